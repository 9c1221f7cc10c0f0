/*
 * thread.c: threads that programs create by themselves. In a run they take part in it, so that
 * virtual time waits for them and they can use channels.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

enum state { WAITS, TAKES_PART, PLAIN };

/* From its creation until its body has ended. */
struct nc_thread {
	struct nc_thread *next;
	pthread_t native;
	void *(*body)(void *argument);
	void *argument;
	enum state state;
	uint32_t number;  /* in the run */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t decided = PTHREAD_COND_INITIALIZER;
static struct nc_thread *threads;

/* Threads of Timed C are its tasks. */
static bool of_run(void)
{
	return nc_in_run() && nc_backend_context() && !nc_backend_is_timedc();
}

static void forget(void *argument)
{
	struct nc_thread *thread = argument;
	pthread_mutex_lock(&lock);
	struct nc_thread **at = &threads;
	while (*at != thread)
		at = &(*at)->next;
	*at = thread->next;
	pthread_mutex_unlock(&lock);
	free(thread);
}

static void take_part(struct nc_thread *thread)
{
	int before;
	/* Who is cancelled meanwhile ends in the body. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&lock);
	while (thread->state == WAITS)
		pthread_cond_wait(&decided, &lock);
	enum state state = thread->state;
	pthread_mutex_unlock(&lock);
	/* After the end of the run its calls fail. */
	if (state == TAKES_PART)
		onbeat_thread_begin(nc_backend_context(), thread->number);
	pthread_setcancelstate(before, NULL);
}

static void *enter(void *argument)
{
	struct nc_thread *thread = argument;
	void *result;
	pthread_cleanup_push(forget, thread);
	take_part(thread);
	result = thread->body(thread->argument);
	pthread_cleanup_pop(1);
	return result;
}

void nc_threads_begin(onbeat *context)
{
	pthread_mutex_lock(&lock);
	for (struct nc_thread *thread = threads; thread; thread = thread->next) {
		if (thread->state != WAITS)
			continue;
		onbeat_status status = onbeat_thread_announce(context, &thread->number);
		thread->state = status == ONBEAT_OK ? TAKES_PART : PLAIN;
	}
	pthread_cond_broadcast(&decided);
	pthread_mutex_unlock(&lock);
}

bool nc_threads_are_there(void)
{
	pthread_mutex_lock(&lock);
	bool are_there = threads != NULL;
	pthread_mutex_unlock(&lock);
	return are_there;
}

int nc_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *argument),
		      void *argument)
{
	if (!of_run())
		return pthread_create(thread, attr, body, argument);
	struct nc_thread *made = calloc(1, sizeof(*made));
	if (!made)
		return EAGAIN;
	made->body = body;
	made->argument = argument;
	pthread_mutex_lock(&lock);
	int failed = pthread_create(&made->native, attr, enter, made);
	if (!failed) {
		*thread = made->native;
		made->next = threads;
		threads = made;
	}
	pthread_mutex_unlock(&lock);
	if (failed)
		free(made);
	else if (nc_backend_has_begun())
		nc_threads_begin(nc_backend_context());
	return failed;
}

/* Waits in the time of the run; nothing for threads that have ended. */
static void await(pthread_t native)
{
	nc_backend_begin();
	uint32_t number = 0;
	bool takes_part = false;
	pthread_mutex_lock(&lock);
	for (const struct nc_thread *thread = threads; thread; thread = thread->next) {
		if (!pthread_equal(thread->native, native))
			continue;
		takes_part = thread->state == TAKES_PART;
		number = thread->number;
	}
	pthread_mutex_unlock(&lock);
	if (takes_part)
		onbeat_thread_await(nc_backend_context(), number);
}

int nc_pthread_join(pthread_t thread, void **result)
{
	if (of_run() && !pthread_equal(thread, pthread_self()))
		await(thread);
	return pthread_join(thread, result);
}
