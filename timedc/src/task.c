/*
 * task.c: main and tasks: their threads, the program's begin and its end.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stack that every task has in memory before it needs it. */
#define STACK_READY (64 * 1024)

_Thread_local struct timedc_thread *timedc_self __attribute__((tls_model("initial-exec")));

static struct timedc_thread threads[TIMEDC_TASKS_MAX + 1];
static unsigned thread_count;
static struct timedc_unit *units;
static bool begun;
static bool finished;

void timedc_die(const char *format, ...)
{
	va_list arguments;
	struct timedc_thread *thread = timedc_defer();
	fprintf(stderr, "timedc: %s%s", thread ? thread->task->name : "", thread ? ": " : "");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

struct timedc_thread *timedc_thread(void)
{
	if (!timedc_self)
		timedc_die("a timing point or the start of a task in a thread that is neither main "
			   "nor a task");
	return timedc_self;
}

struct timedc_thread *timedc_thread_at(unsigned number)
{
	return &threads[number];
}

unsigned timedc_thread_count(void)
{
	unsigned count = __atomic_load_n(&thread_count, __ATOMIC_ACQUIRE);
	return count < TIMEDC_TASKS_MAX + 1 ? count : TIMEDC_TASKS_MAX + 1;
}

const struct timedc_unit *timedc_units(void)
{
	return units;
}

/* Constructors run one after the other. */
void timedc_register(struct timedc_unit *unit)
{
	unit->next = units;
	units = unit;
}

/* Of the unit that has the task. */
static bool unit_keeps_phase(const struct timedc_task *task)
{
	for (const struct timedc_unit *unit = units; unit; unit = unit->next)
		for (int i = 0; i < unit->task_count; i++)
			if (unit->tasks[i] == task)
				return unit->keep_phase;
	return false;
}

static struct timedc_thread *thread_new(const struct timedc_task *task)
{
	timedc_tasks_lock();
	unsigned number = __atomic_fetch_add(&thread_count, 1, __ATOMIC_ACQ_REL);
	if (number > TIMEDC_TASKS_MAX)
		timedc_die("more than %d tasks", TIMEDC_TASKS_MAX);
	struct timedc_thread *thread = &threads[number];
	thread->task = task;
	thread->number = number;
	thread->keep_phase = unit_keeps_phase(task);
	thread->policy = -1;
	thread->proposed = timedc_proposed(task);
	timedc_tasks_unlock();
	return thread;
}

/* The calling thread is the task's. */
static void here(struct timedc_thread *thread)
{
	timedc_tasks_lock();
	thread->id = (pid_t)syscall(SYS_gettid);
	timedc_tasks_unlock();
}

/* All that is written at the end. */
static void finish(void)
{
	if (__atomic_exchange_n(&finished, true, __ATOMIC_ACQ_REL))
		return;
	timedc_fifo_report();
	timedc_trace_end();
	timedc_times_end();
}

static void end(struct timedc_thread *thread)
{
	thread->deferred++;
	timedc_tasks_lock();
	thread->over = true;
	timedc_tasks_unlock();
	thread->deferred--;
	timedc_disarm(thread);
	timedc_segment_over(thread);
	if (!timedc_backend_stopped())
		timedc_times_pass(thread, NULL, TIMEDC_INFTY);
	timedc_ns now = timedc_now();
	timedc_measure_to(thread, NULL, now);
	timedc_trace(thread, TIMEDC_E_END, "", now, 0);
	timedc_timer_drop(thread);
}

static void join_all(void)
{
	/* A task may start another. */
	for (unsigned number = 1; number < timedc_thread_count(); number++)
		timedc_backend_join(&threads[number]);
}

void timedc_begin(void)
{
	if (begun)
		return;
	struct timedc_thread *thread = timedc_thread();
	begun = true;
	thread->deferred++;
	timedc_net_open();
	timedc_backend_begin();
	timedc_guards_begin();
	timedc_timer_make(thread);
	timedc_schedule();
	timedc_times_start(thread);
	timedc_resume(thread);
	timedc_rearm(thread);
}

/* A program that has nothing of Timed C is left alone. */
static bool is_plain(void)
{
	for (const struct timedc_unit *unit = units; unit; unit = unit->next)
		if (!unit->is_plain)
			return false;
	return true;
}

int timedc_main_enter(const struct timedc_task *main_task)
{
	if (timedc_self || thread_count > 0 || is_plain())
		return 0;
	struct timedc_thread *thread = thread_new(main_task);
	timedc_self = thread;
	thread->deferred++;
	here(thread);
	timedc_trace_begin();
	timedc_times_begin();
	atexit(finish);
	timedc_backend_enter();
	if (timedc_backend_has_time()) {
		timedc_guards_begin();
		timedc_timer_make(thread);
	}
	timedc_trace(thread, TIMEDC_E_START, "", 0, 0);
	timedc_measure_from(thread, NULL, 0);
	timedc_resume(thread);
	return 1;
}

void timedc_main_leave(int *entered)
{
	if (!*entered)
		return;
	end(timedc_self);
	timedc_self->deferred++;
	join_all();
	finish();
	timedc_self = NULL;
}

void timedc_stop(void)
{
	struct timedc_thread *thread = timedc_self;
	if (!thread)
		pthread_exit(NULL);
	timedc_disarm(thread);
	if (thread->number > 0)
		__builtin_longjmp(thread->end, 1);
	int entered = 1;
	timedc_main_leave(&entered);
	exit(EXIT_SUCCESS);
}

/* Touches the stack, so that the kernel need not find memory for it later. */
static __attribute__((noinline)) void ready_stack(void)
{
	volatile unsigned char stack[STACK_READY];
	for (size_t i = 0; i < sizeof(stack); i += 1024)
		stack[i] = 0;
}

static __attribute__((noinline)) void live(struct timedc_thread *thread)
{
	if (__builtin_setjmp(thread->end))
		return;
	timedc_timer_make(thread);
	timedc_schedule();
	timedc_trace(thread, TIMEDC_E_START, "", timedc_now(), 0);
	timedc_measure_from(thread, NULL, 0);
	timedc_times_start(thread);
	thread->deferred = 0;
	thread->task->body(thread->arguments);
}

static void *body(void *argument)
{
	struct timedc_thread *thread = argument;
	timedc_self = thread;
	thread->deferred = 1;
	here(thread);
	ready_stack();
	live(thread);
	thread->deferred = 1;
	thread->critical = 0;
	end(thread);
	return NULL;
}

void timedc_start(const struct timedc_task *task, const void *arguments)
{
	struct timedc_thread *self = timedc_thread();
	timedc_begin();
	self->deferred++;
	struct timedc_thread *thread = thread_new(task);
	thread->origin = timedc_now();
	if (task->arguments_size > 0) {
		thread->arguments = malloc(task->arguments_size);
		if (!thread->arguments)
			timedc_die("no memory for the task %s", task->name);
		memcpy(thread->arguments, arguments, task->arguments_size);
	}
	if (!timedc_backend_create(thread, body))
		timedc_die("cannot create a thread for the task %s", task->name);
	timedc_resume(self);
}
