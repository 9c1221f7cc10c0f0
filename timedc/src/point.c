/*
 * point.c: timing points. Nothing here allocates or locks.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <stdlib.h>

/* EX_SOFTWARE of sysexits.h. */
#define EXIT_MISSED 70

#pragma weak timedc_safe_state

static void missed(const struct timedc_late *late)
{
	if (timedc_safe_state)
		timedc_safe_state();
	timedc_defer();
	fprintf(stderr, "%s:%d: task %s: ", late->file, late->line, late->task);
	/* Who is aborted is not late: its segment would have been. */
	if (late->overshoot_ns > 0)
		fprintf(stderr, "hard deadline missed by %lld ns\n", (long long)late->overshoot_ns);
	else
		fprintf(stderr, "aborted at its hard deadline\n");
	exit(EXIT_MISSED);
}

static void run_handler(struct timedc_thread *thread, const struct timedc_point *point,
			timedc_ns now, timedc_ns overshoot)
{
	struct timedc_late late = {
		.task = thread->task->name,
		.file = point->file,
		.line = point->line,
		.overshoot_ns = overshoot,
	};
	timedc_trace(thread, TIMEDC_E_LATE, point->name, now, overshoot);
	(thread->on_late ? thread->on_late : missed)(&late);
}

static timedc_ns scale_of(int unit)
{
	return unit == 0 ? TIMEDC_NS_IN_SEC : unit == -3 ? 1000000 : unit == -6 ? 1000 : 1;
}

/* The next segment begins: its release was due at `due`. */
static void release(struct timedc_thread *thread, const struct timedc_point *point,
		    enum timedc_event event, timedc_ns due, timedc_ns overshoot)
{
	timedc_ns now = timedc_now();
	timedc_trace(thread, event, point->name, now, overshoot);
	timedc_measure_from(thread, point, now - due);
}

long timedc_point(const struct timedc_point *point, timedc_ns period, timedc_ns deadline)
{
	struct timedc_thread *thread = timedc_thread();
	timedc_begin();
	timedc_ns due = timedc_add(thread->origin, deadline == TIMEDC_SAME ? period : deadline);
	if (!thread->aborted && !thread->skipping)
		timedc_times_pass(thread, point, point->kind == TIMEDC_SOFT ? TIMEDC_INFTY : due);
	if (thread->aborted)
		timedc_times_abort(thread, point);
	bool aborted = thread->aborted, skipping = thread->skipping;
	timedc_ns at = timedc_add(thread->origin, period);
	timedc_disarm_for_sleep(thread, skipping ? TIMEDC_INFTY : at);
	timedc_segment_over(thread);

	timedc_ns now = timedc_now();
	if (now >= at)
		timedc_sleep_over(thread);
	timedc_ns overshoot = now > due ? now - due : 0;
	thread->aborted = thread->skipping = false;
	thread->last_aborted = aborted && !skipping;
	timedc_trace(thread, thread->last_aborted ? TIMEDC_E_ABORT : TIMEDC_E_ARRIVE, point->name,
		     now, overshoot);
	thread->abort_latency = thread->last_aborted ? overshoot : 0;
	timedc_measure_to(thread, point, now);
	if (skipping) {
		thread->origin = now;
		release(thread, point, TIMEDC_E_SKIP, now, 0);
		return 0;
	}
	if (point->kind == TIMEDC_HARD && (aborted || overshoot > 0))
		run_handler(thread, point, now, overshoot);

	if (now < at) {
		timedc_sleep_until(timedc_add(at, timedc_times_jitter(thread, point)));
		timedc_sleep_over(thread);
	} else {
		/* Who is always late must see the run's end, too. Virtual time does not pass here. */
		if (!timedc_backend_is_virtual())
			timedc_backend_look();
		if (!thread->keep_phase)
			at = now;
	}
	thread->origin = at;
	if (timedc_observed)
		release(thread, point, TIMEDC_E_RELEASE, at, overshoot);
	else
		thread->from = point;
	return overshoot / scale_of(point->unit);
}

long timedc_gettime(int unit)
{
	struct timedc_thread *thread = timedc_thread();
	timedc_begin();
	thread->origin = timedc_now();
	timedc_ns now = thread->origin;
	timedc_rearm(thread);
	return now / scale_of(unit);
}

timedc_ns timedc_origin_enter(void)
{
	struct timedc_thread *thread = timedc_thread();
	timedc_begin();
	timedc_ns origin = thread->origin;
	thread->origin = timedc_now();
	return origin;
}

void timedc_origin_leave(timedc_ns *origin)
{
	timedc_thread()->origin = *origin;
}

void timedc_skip(void)
{
	struct timedc_thread *thread = timedc_thread();
	timedc_disarm(thread);
	thread->skipping = true;
}

void timedc_on_late(timedc_late_handler *handler)
{
	timedc_thread()->on_late = handler;
}

int timedc_aborted(void)
{
	return timedc_thread()->last_aborted;
}

void timedc_keep_phase(int keep)
{
	timedc_thread()->keep_phase = keep;
}
