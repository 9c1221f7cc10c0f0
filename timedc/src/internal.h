/*
 * internal.h: what the run time's files share.
 *
 * A task's state belongs to its thread: no other thread looks at it, but for its timer's signal,
 * which runs in the same thread. So plain stores in a fixed order are all that is needed between
 * the two. SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <timedc.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <onbeat.h>

#define TIMEDC_TASKS_MAX 256
#define TIMEDC_ON_ABORT_MAX 16
/* What a segment has taken and not given back, at most; more keeps its abort waiting to the end. */
#define TIMEDC_HELD_MAX 128
/* Calls of functions that are not wrapped by hand, one in the other (deferred.c). */
#define TIMEDC_BACKS_MAX 64
#define TIMEDC_NS_IN_SEC 1000000000LL

enum timedc_event {
	TIMEDC_E_START, TIMEDC_E_END, TIMEDC_E_ARRIVE, TIMEDC_E_ABORT, TIMEDC_E_LATE,
	TIMEDC_E_RELEASE, TIMEDC_E_SKIP, TIMEDC_E_REACH, TIMEDC_E_WRITE, TIMEDC_E_READ,
	TIMEDC_E_FULL,
};

struct timedc_deed {
	void (*function)(void *argument);
	void *argument;
};

/* Main or a task. */
struct timedc_thread {
	const struct timedc_task *task;
	unsigned number; /* 0 is main */
	void *end[5];    /* of __builtin_setjmp: where it ends when the run is over */
	pthread_t native;
	onbeat_thread *member;
	void *arguments;
	pid_t id;

	timedc_ns origin;
	bool over; /* it is about to end */
	bool keep_phase;
	bool skipping;
	bool aborted;      /* on the way to a point after an abort */
	bool last_aborted; /* what timedc_aborted() tells */
	timedc_late_handler *on_late;

	/* The guard in force: none when `frame` is NULL. The signal looks at `armed` first. */
	struct timedc_frame *volatile frame;
	const struct timedc_point *guard;
	timedc_ns guard_span;
	timedc_ns expires;
	timedc_ns machine_expires; /* by the timers' clock */
	volatile bool armed;
	volatile bool pending;     /* the signal came when nothing may be aborted */
	volatile unsigned deferred, critical;
	volatile unsigned held;
	/* Where calls of functions return to that are not wrapped by hand. */
	void *back[TIMEDC_BACKS_MAX];
	volatile unsigned backs;
	bool waiting; /* in a call of ours that ends at the deadline */
	bool timer_set, has_timer;
	volatile bool timer_stays; /* set for a sleep's end, though nothing is guarded */
	timer_t timer;

	const void *holds[TIMEDC_HELD_MAX];
	unsigned hold_count;
	struct timedc_deed on_abort[TIMEDC_ON_ABORT_MAX];
	unsigned on_abort_count;

	/* In virtual time, the mutex that it waits for, and from where. */
	const pthread_mutex_t *awaits;
	const void *awaits_in;

	/* Scheduling: what was asked for. */
	int policy; /* an enum timedc_policy, or -1 */
	int priority;
	int proposed; /* of the run, for a task that asks for nothing; 0: none */
	timedc_ns separation;

	/* The segment in progress, for its execution time and its measurement. */
	const struct timedc_point *from; /* NULL: the task's start */
	timedc_ns released;
	timedc_ns cpu_began;
	timedc_ns jitter;
	timedc_ns abort_latency;
};

/* NULL in threads that are neither main nor a task. */
extern _Thread_local struct timedc_thread *timedc_self __attribute__((tls_model("initial-exec")));
/* The calling thread's; ends the program, saying why, when it has none. */
struct timedc_thread *timedc_thread(void);

/* --- symbol.c --------------------------------------------------------------------------------- */

/* What the program calls an address; the number itself if unknown. */
void timedc_symbol(const void *address, char *name, size_t length);

/* --- backend.c: clock, waiting, threads ------------------------------------------------------- */

/* Main's scope begins: joins the run, or takes this machine's clock. */
void timedc_backend_enter(void);
/* The common start, once; a task's first call. Ends the program when there is none. */
void timedc_backend_begin(void);
bool timedc_backend_is_virtual(void);
bool timedc_backend_in_run(void);
/* Ends the calling task if the run is over. */
void timedc_backend_look(void);
/* The library's, if there is a run or an interface. */
onbeat *timedc_backend_context(void);
/* The clock of timers, and what it reads at an instant. */
clockid_t timedc_backend_timer_clock(void);
timedc_ns timedc_backend_machine_time(timedc_ns at);
/* Instants count from the program's start. */
timedc_ns timedc_now(void);
/* Whether instants can be compared already: in a run not before its start. */
bool timedc_backend_has_time(void);
/* These end the calling task when the run is over. */
void timedc_sleep_until(timedc_ns at);
/* So long passes in virtual time, until `limit` at most: false then. */
bool timedc_pass(const struct timedc_thread *thread, timedc_ns span, timedc_ns limit);
/* Where virtual time shares processors, waits until the task is the most urgent one on its own. */
void timedc_take_turn(const struct timedc_thread *thread);
/* Where it does not, lets those continue that wait for what has just been given back. */
void timedc_hand_over(void);
/* Waits while `*word` is `value`, at most until `until`: false then. */
bool timedc_wait(const uint32_t *word, uint32_t value, timedc_ns until);
/* In virtual time, waits for what another thread holds, which inherits this one's urgency. */
void timedc_wait_for(const uint32_t *word, pid_t holder);
void timedc_wake(const uint32_t *word);
bool timedc_backend_create(struct timedc_thread *thread, void *(*body)(void *thread));
void timedc_backend_join(struct timedc_thread *thread);
/* Whether a call in the calling thread has said that the run is over. */
bool timedc_backend_stopped(void);
static inline timedc_ns timedc_clock_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * TIMEDC_NS_IN_SEC + time.tv_nsec;
}
static inline timedc_ns timedc_add(timedc_ns a, timedc_ns b)
{
	timedc_ns sum;
	return __builtin_add_overflow(a, b, &sum) ? TIMEDC_INFTY : sum;
}

/* --- task.c ----------------------------------------------------------------------------------- */

/* All threads that there are or were, main first. */
struct timedc_thread *timedc_thread_at(unsigned number);
unsigned timedc_thread_count(void);
const struct timedc_unit *timedc_units(void);
/* Begins the program if that has not been done. */
void timedc_begin(void);
/* The run is over: ends the calling task, or joins all tasks and ends the program. */
_Noreturn void timedc_stop(void);
_Noreturn void timedc_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- guard.c ---------------------------------------------------------------------------------- */

void timedc_guards_begin(void);
/* The thread's timer, if the backend has any. */
void timedc_timer_make(struct timedc_thread *thread);
void timedc_timer_drop(struct timedc_thread *thread);
/* Ends the guard in force: the first thing at a point. */
void timedc_disarm(struct timedc_thread *thread);
/* The same before a sleep, and what follows it. */
void timedc_disarm_for_sleep(struct timedc_thread *thread, timedc_ns until);
void timedc_sleep_over(struct timedc_thread *thread);
/* Watches the guard's deadline again, counted from the origin. */
void timedc_rearm(struct timedc_thread *thread);
/* Around a wait that may end at the deadline, between timedc_defer() and timedc_resume(). */
void timedc_wait_begins(struct timedc_thread *thread);
void timedc_wait_ends(struct timedc_thread *thread);
/* Until when it may last: the guard's deadline, if the segment may be aborted there. */
timedc_ns timedc_limit(const struct timedc_thread *thread);
/* Aborts if that has come. */
void timedc_expire(struct timedc_thread *thread);
/* Aborts if the deadline has passed and nothing is in the way. */
void timedc_abort_if_due(struct timedc_thread *thread);
/* The segment is over: what it holds and what was to be done at its abort are forgotten. */
void timedc_segment_over(struct timedc_thread *thread);
void timedc_hold(struct timedc_thread *thread, const void *what);
void timedc_unhold(struct timedc_thread *thread, const void *what);

/* Between the two nothing is aborted. */
static inline struct timedc_thread *timedc_defer(void)
{
	struct timedc_thread *thread = timedc_self;
	if (thread)
		thread->deferred++;
	TIMEDC_SYNC();
	return thread;
}

static inline void timedc_resume(struct timedc_thread *thread)
{
	TIMEDC_SYNC();
	if (thread && --thread->deferred == 0 && thread->pending)
		timedc_abort_if_due(thread);
}

/* --- deferred.c ------------------------------------------------------------------------------- */

/* What the program calls in place of a library's function that it was given a pointer to; anything
 * else as it is. */
void *timedc_deferring(void *found);

/* --- schedule.c ------------------------------------------------------------------------------- */

/* Ranks all tasks again and applies what changed. */
void timedc_schedule(void);
/* Others look at what ranks a task, at its `id`, and at whether it is over. Deferred. */
void timedc_tasks_lock(void);
void timedc_tasks_unlock(void);
/* How urgent a task is where virtual time shares processors: a priority, 0 for the program's, or
 * an absolute deadline, TIMEDC_INFTY for none. */
/* The priority that the analysis of its processor has found for a task that asks for nothing: the
 * run says so as `task=priority,`. Tasks of one function have one priority. */
int timedc_proposed(const struct timedc_task *task);
int timedc_urgency(const struct timedc_thread *thread, timedc_ns *deadline);

/* --- times.c: execution times and their measurement ------------------------------------------- */

/* Whether anybody wants to know when segments begin. */
extern bool timedc_observed;
void timedc_times_begin(void);
/* The segment's declared time passes, as it arrives at `to` (NULL: the task's end), up to the
 * deadline of a firm or hard point. */
void timedc_times_pass(struct timedc_thread *thread, const struct timedc_point *to, timedc_ns due);
/* The time that the segment's abort takes passes, before control is at `to`. */
void timedc_times_abort(struct timedc_thread *thread, const struct timedc_point *to);
/* By how much segments that begin at `from` (NULL: the task's start) begin late; and the first one
 * begins so late. */
timedc_ns timedc_times_jitter(const struct timedc_thread *thread, const struct timedc_point *from);
void timedc_times_start(struct timedc_thread *thread);
/* A segment begins, released so much later than asked for. */
void timedc_measure_from(struct timedc_thread *thread, const struct timedc_point *from,
			 timedc_ns jitter);
void timedc_measure_to(struct timedc_thread *thread, const struct timedc_point *to, timedc_ns now);
void timedc_times_end(void);

/* --- trace.c ---------------------------------------------------------------------------------- */

/* timedc_tracing, in timedc.h: whether there is a trace. */
void timedc_trace_begin(void);
void timedc_trace_add(struct timedc_thread *thread, enum timedc_event event, const char *place,
		      timedc_ns at, timedc_ns value);
void timedc_trace_end(void);
static inline void timedc_trace(struct timedc_thread *thread, enum timedc_event event,
				const char *place, timedc_ns at, timedc_ns value)
{
	if (timedc_tracing)
		timedc_trace_add(thread, event, place, at, value);
}

/* --- net.c, fifo.c ---------------------------------------------------------------------------- */

/* Opens all ends of network channels that the program names. */
void timedc_net_open(void);
/* Says how many values were dropped. */
void timedc_fifo_report(void);
