/*
 * guard.c: guards, and the abort of a segment.
 *
 * Where the machine's clock counts, every task has a timer, whose signal goes to its thread alone.
 * The handler does not return when it aborts: control continues at the point. It looks at `armed`
 * first and at the clock next, so a signal that comes too late, for a guard that is no more, does
 * nothing. In virtual time there are no signals: time passes only where the task waits, and waits
 * end at the deadline.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"
#include "signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* Of the C library, by the numbers that it does not tell. */
#define SIGCANCEL 32
#define SIGSETXID 33
/* After that an abort is tried again. */
#define AGAIN_NS 20000

/* Timers are of use. */
static bool with_timers;

static void set_timer(struct timedc_thread *thread, timedc_ns at);

/* --- what the segment holds ------------------------------------------------------------------- */

void timedc_hold(struct timedc_thread *thread, const void *what)
{
	if (!thread || thread->deferred != 1)
		return;
	if (thread->hold_count < TIMEDC_HELD_MAX)
		thread->holds[thread->hold_count++] = what;
	thread->held++;
}

void timedc_unhold(struct timedc_thread *thread, const void *what)
{
	if (!thread || thread->deferred != 1 || !what)
		return;
	for (unsigned i = thread->on_abort_count; i-- > 0;) {
		if (thread->on_abort[i].argument != what)
			continue;
		thread->on_abort_count--;
		memmove(&thread->on_abort[i], &thread->on_abort[i + 1],
			(thread->on_abort_count - i) * sizeof(thread->on_abort[0]));
		return;
	}
	for (unsigned i = thread->hold_count; i-- > 0;) {
		if (thread->holds[i] != what)
			continue;
		thread->holds[i] = thread->holds[--thread->hold_count];
		/* Without a timer nothing else has noted that the deadline may have passed. */
		if (--thread->held == 0 && !thread->has_timer)
			thread->pending = true;
		return;
	}
}

int timedc_on_abort(void (*function)(void *), void *argument)
{
	struct timedc_thread *thread = timedc_defer();
	int result = -1;
	if (thread && function && thread->on_abort_count < TIMEDC_ON_ABORT_MAX) {
		unsigned count = thread->on_abort_count;
		thread->on_abort_count = 0;
		timedc_unhold(thread, argument);
		thread->on_abort[count] = (struct timedc_deed){function, argument};
		thread->on_abort_count = count + 1;
		result = 0;
	}
	timedc_resume(thread);
	return result;
}

void timedc_segment_over(struct timedc_thread *thread)
{
	thread->hold_count = 0;
	thread->held = 0;
	thread->on_abort_count = 0;
}

/* --- the abort -------------------------------------------------------------------------------- */

static bool may_abort(const struct timedc_thread *thread)
{
	return thread->frame && !thread->deferred && !thread->critical && !thread->held;
}

static _Noreturn void abort_segment(struct timedc_thread *thread)
{
	struct timedc_frame *frame = thread->frame;
	thread->armed = false;
	thread->deferred = 1;
	thread->waiting = false;
	thread->pending = false;
	thread->frame = NULL;
	while (thread->on_abort_count > 0) {
		struct timedc_deed deed = thread->on_abort[--thread->on_abort_count];
		deed.function(deed.argument);
	}
	timedc_segment_over(thread);
	thread->aborted = true;
	thread->deferred = 0;
#ifdef __x86_64__
	/* A function that has just returned may have left its result on the stack of these. */
	__asm__ volatile("emms");
#endif
	TIMEDC_SYNC();
	frame->leap(frame->jump);
	__builtin_unreachable();
}

void timedc_abort_if_due(struct timedc_thread *thread)
{
	if (!may_abort(thread))
		return;
	/* Without a timer the time is looked at, in a call that may itself be deferred. */
	thread->deferred++;
	bool due = thread->has_timer ? thread->pending : timedc_now() > thread->expires;
	thread->deferred--;
	if (due)
		abort_segment(thread);
}

/* Not in a function of the C library that has called one of the program's. */
void timedc_wait_begins(struct timedc_thread *thread)
{
	if (thread)
		thread->waiting = thread->deferred == 1;
}

void timedc_wait_ends(struct timedc_thread *thread)
{
	if (thread)
		thread->waiting = false;
}

timedc_ns timedc_limit(const struct timedc_thread *thread)
{
	if (!thread || !thread->frame || !thread->waiting || thread->critical || thread->held)
		return TIMEDC_INFTY;
	return thread->expires;
}

void timedc_expire(struct timedc_thread *thread)
{
	timedc_ns limit = timedc_limit(thread);
	if (limit != TIMEDC_INFTY && timedc_now() >= limit)
		abort_segment(thread);
}

/* Control words of the floating-point unit, which the kernel has reset for the handler. */
static void restore_floating_point(const ucontext_t *context)
{
#ifdef __x86_64__
	if (context->uc_mcontext.fpregs) {
		__asm__ volatile("ldmxcsr %0" : : "m"(context->uc_mcontext.fpregs->mxcsr));
		__asm__ volatile("fldcw %0" : : "m"(context->uc_mcontext.fpregs->cwd));
	}
#else
	(void)context;
#endif
}

/*
 * Whether the C library's own handler was interrupted: that of a signal by which all threads change
 * their user, or are cancelled. The thread that sent it waits for the handler's end. Such a signal
 * is blocked in its handler only.
 */
static bool is_in_library(const ucontext_t *context)
{
	return sigismember(&context->uc_sigmask, SIGCANCEL) == 1 ||
	       sigismember(&context->uc_sigmask, SIGSETXID) == 1;
}

static void on_expiry(int number, siginfo_t *information, void *context)
{
	struct timedc_thread *thread = timedc_self;
	(void)number;
	(void)information;
	if (!thread)
		return;
	if (!thread->armed) {
		thread->timer_stays = false;
		return;
	}
	int error = errno;
	bool due = timedc_clock_ns(timedc_backend_timer_clock()) >= thread->machine_expires;
	if (due && is_in_library(context))
		set_timer(thread, timedc_clock_ns(timedc_backend_timer_clock()) + AGAIN_NS);
	errno = error;
	if (!due || is_in_library(context))
		return;
	thread->armed = false;
	if (!may_abort(thread)) {
		thread->pending = true;
		return;
	}
	restore_floating_point(context);
	abort_segment(thread);
}

/* --- timers ----------------------------------------------------------------------------------- */

void timedc_guards_begin(void)
{
	with_timers = !timedc_backend_is_virtual() && timedc_signal_take(on_expiry);
}

void timedc_timer_make(struct timedc_thread *thread)
{
	static bool told;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TIMEDC_ABORT_SIGNAL};
	if (!with_timers || thread->has_timer)
		return;
	/* Whoever started the program may have blocked it. */
	timedc_signal_unblock();
	event._sigev_un._tid = thread->id;
	if (timer_create(timedc_backend_timer_clock(), &event, &thread->timer) == 0) {
		thread->has_timer = true;
	} else if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED)) {
		fprintf(stderr, "timedc: no timer: %s; aborts come only where a task waits\n",
			strerror(errno));
	}
}

void timedc_timer_drop(struct timedc_thread *thread)
{
	if (thread->has_timer)
		timer_delete(thread->timer);
	thread->has_timer = false;
}

static void set_timer(struct timedc_thread *thread, timedc_ns at)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = at / TIMEDC_NS_IN_SEC, .tv_nsec = at % TIMEDC_NS_IN_SEC},
	};
	timer_settime(thread->timer, TIMER_ABSTIME, &when, NULL);
	thread->timer_set = at != 0;
	thread->timer_stays = false;
}

static bool disarm(struct timedc_thread *thread)
{
	bool ahead = thread->armed;
	thread->armed = false;
	TIMEDC_SYNC();
	thread->frame = NULL;
	thread->pending = false;
	return ahead && thread->timer_set;
}

void timedc_disarm(struct timedc_thread *thread)
{
	if (disarm(thread))
		set_timer(thread, 0);
}

/* A timer that expires just then may stay: it wakes no task that would not wake anyway, and setting
 * it costs as much as the sleep. */
void timedc_disarm_for_sleep(struct timedc_thread *thread, timedc_ns until)
{
	bool stays = thread->armed && thread->expires == until;
	bool ahead = disarm(thread);
	if (ahead && stays)
		thread->timer_stays = true;
	else if (ahead)
		set_timer(thread, 0);
}

/* No signal comes after the sleep: it would interrupt the program's calls. */
void timedc_sleep_over(struct timedc_thread *thread)
{
	if (thread->timer_stays)
		set_timer(thread, 0);
}

void timedc_rearm(struct timedc_thread *thread)
{
	if (!thread->frame || !timedc_backend_has_time())
		return;
	thread->armed = false;
	TIMEDC_SYNC();
	thread->expires = timedc_add(thread->origin, thread->guard_span);
	thread->pending = false;
	if (!thread->has_timer) {
		timedc_abort_if_due(thread);
		return;
	}
	if (thread->expires == TIMEDC_INFTY) {
		if (thread->timer_set)
			set_timer(thread, 0);
		return;
	}
	thread->deferred++;
	thread->machine_expires = timedc_backend_machine_time(thread->expires);
	TIMEDC_SYNC();
	thread->armed = true;
	/* 0 would stop the timer; an instant of the past expires at once. */
	set_timer(thread, thread->machine_expires > 0 ? thread->machine_expires : 1);
	timedc_resume(thread);
}

/* --- what translated code calls --------------------------------------------------------------- */

int timedc_guard_begins(const struct timedc_frame *frame, const struct timedc_point *point)
{
	struct timedc_thread *thread = timedc_thread();
	if (thread->frame == frame && thread->guard == point)
		return 0;
	/* The frame's jump is about to change. */
	timedc_disarm(thread);
	return 1;
}

void timedc_guard(struct timedc_frame *frame, const struct timedc_point *point, timedc_ns deadline)
{
	struct timedc_thread *thread = timedc_thread();
	thread->armed = false;
	TIMEDC_SYNC();
	thread->frame = frame;
	thread->guard = point;
	thread->guard_span = deadline;
	timedc_rearm(thread);
}

void timedc_unguard(struct timedc_frame *frame)
{
	struct timedc_thread *thread = timedc_self;
	if (thread && thread->frame == frame)
		timedc_disarm(thread);
}

void timedc_frame_leave(struct timedc_frame *frame)
{
	timedc_unguard(frame);
}

int timedc_critical_enter(void)
{
	struct timedc_thread *thread = timedc_self;
	if (!thread)
		return 0;
	thread->critical++;
	TIMEDC_SYNC();
	return 1;
}

void timedc_critical_leave(int *entered)
{
	struct timedc_thread *thread = timedc_self;
	if (!*entered || !thread)
		return;
	/* When the guard began in the block, the abort goes there first and leaves it once more. */
	*entered = 0;
	TIMEDC_SYNC();
	if (--thread->critical == 0)
		timedc_abort_if_due(thread);
}
