/*
 * member.c: the program's membership in a run. The runtime's threads do not belong to the run, so a
 * thread of our own joins it and does what only members may. ONBEAT_LF_INLINE is for runtimes that
 * execute all reactions on one thread and wait in the time of the run: that thread is the member.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A thread of the run. It ends with the program, or with the run. */
struct thread {
	struct thread *next;
	onbeat_thread *handle;
};

static onbeat *membership;
static bool is_started;
static struct thread *threads;

void lf_fatal(const char *format, ...)
{
	va_list arguments;
	flockfile(stderr);
	fputs("onbeat_lf: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	funlockfile(stderr);
	/* Not exit(): the runtime's handlers wait for threads that wait for us. */
	fflush(stdout);
	_exit(1);
}

onbeat *lf_member_context(void)
{
	return __atomic_load_n(&membership, __ATOMIC_ACQUIRE);
}

static void join(void)
{
	onbeat *context = NULL;
	if (lf_member_context())
		return;
	if (onbeat_open(&context) < 0)
		lf_fatal("%s", onbeat_last_error());
	__atomic_store_n(&membership, context, __ATOMIC_RELEASE);
}

onbeat_talker *lf_open_talker(const char *channel, size_t octets)
{
	onbeat_talker *end = NULL;
	if (onbeat_talker_open(lf_member_context(), channel, octets, &end) < 0)
		lf_fatal("%s, %zu octets: %s", channel, octets, onbeat_last_error());
	return end;
}

onbeat_listener *lf_open_listener(const char *channel, size_t octets)
{
	onbeat_listener *end = NULL;
	if (onbeat_listener_open(lf_member_context(), channel, octets, &end) < 0)
		lf_fatal("%s, %zu octets: %s", channel, octets, onbeat_last_error());
	return end;
}

bool lf_member_start(void)
{
	if (is_started)
		return true;
	onbeat_status status = onbeat_start(lf_member_context());
	if (status < 0)
		lf_fatal("the run does not start: %s", onbeat_last_error());
	is_started = status == ONBEAT_OK;
	return is_started;
}

void lf_member_thread(onbeat_thread_body body, void *argument)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	if (!thread)
		lf_fatal("there is no memory for a thread");
	onbeat_status status =
		onbeat_thread_create(lf_member_context(), body, argument, &thread->handle);
	if (status < 0)
		lf_fatal("no thread for a channel: %s", onbeat_last_error());
	thread->next = threads;
	threads = thread;
}

void lf_member_check(void)
{
	int64_t now;
	if (onbeat_now(lf_member_context(), &now) == ONBEAT_E_THREAD)
		lf_fatal("this runtime has a clock and threads of its own: run it in real time, "
			 "with `onbeat run --time real`");
}

#ifdef ONBEAT_LF_INLINE

void lf_member_do(void (*task)(void *), void *argument)
{
	join();
	task(argument);
}

void lf_member_begin_with(void (*task)(void *), void *argument)
{
	lf_member_do(task, argument);
}

#else

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool exists;
	/* What is to be done; NULL when the thread has done it and can do something else. */
	void (*task)(void *);
	void *argument;
} member = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *serve(void *unused)
{
	(void)unused;
	join();
	pthread_mutex_lock(&member.lock);
	for (;;) {
		while (!member.task)
			pthread_cond_wait(&member.changed, &member.lock);
		void (*task)(void *) = member.task;
		pthread_mutex_unlock(&member.lock);
		task(member.argument);
		pthread_mutex_lock(&member.lock);
		member.task = NULL;
		pthread_cond_broadcast(&member.changed);
	}
	return NULL;
}

/* Gives the thread a task when it can do one. With the lock held. */
static void give(void (*task)(void *), void *argument)
{
	if (!member.exists) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, serve, NULL) != 0)
			lf_fatal("no thread to join the run with");
		pthread_detach(thread);
		member.exists = true;
	}
	while (member.task)
		pthread_cond_wait(&member.changed, &member.lock);
	member.task = task;
	member.argument = argument;
	pthread_cond_broadcast(&member.changed);
}

struct waited {
	void (*task)(void *);
	void *argument;
	bool is_done;
};

static void do_waited(void *argument)
{
	struct waited *waited = argument;
	waited->task(waited->argument);
	pthread_mutex_lock(&member.lock);
	waited->is_done = true;
	pthread_cond_broadcast(&member.changed);
	pthread_mutex_unlock(&member.lock);
}

void lf_member_do(void (*task)(void *), void *argument)
{
	struct waited waited = { task, argument, false };
	pthread_mutex_lock(&member.lock);
	give(do_waited, &waited);
	while (!waited.is_done)
		pthread_cond_wait(&member.changed, &member.lock);
	pthread_mutex_unlock(&member.lock);
}

void lf_member_begin_with(void (*task)(void *), void *argument)
{
	pthread_mutex_lock(&member.lock);
	give(task, argument);
	pthread_mutex_unlock(&member.lock);
}

#endif
