/*
 * backend.c: where the program runs: in a run of `onbeat run`, on the interface that
 * ONBEAT_INTERFACE names, or on this machine alone. The first two have a context of the library,
 * which knows the time.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../compat/src/timedc_hooks.h"

static struct {
	onbeat *context; /* NULL on this machine alone */
	bool in_run;
	bool begun;
	bool is_virtual;
	bool shares_processors;
	clockid_t clock;
	timedc_ns epoch; /* of instants, by CLOCK_MONOTONIC */
} backend = {.clock = CLOCK_MONOTONIC};

static _Thread_local bool stopped;

bool timedc_backend_stopped(void)
{
	return stopped;
}

bool timedc_backend_is_virtual(void)
{
	return backend.is_virtual;
}

bool timedc_backend_in_run(void)
{
	return backend.in_run;
}

bool timedc_backend_has_time(void)
{
	return !backend.context || backend.begun;
}

void timedc_backend_enter(void)
{
	/* ONBEAT_FABRIC is the old name. */
	backend.in_run = secure_getenv("ONBEAT_COORDINATOR") || secure_getenv("ONBEAT_FABRIC");
	if (backend.in_run) {
		backend.context = nc_timedc_context();
		if (!backend.context)
			timedc_die("cannot join the run");
	} else if (secure_getenv("ONBEAT_INTERFACE")) {
		if (onbeat_open(&backend.context) != ONBEAT_OK)
			timedc_die("%s", onbeat_last_error());
	}
	prctl(PR_SET_TIMERSLACK, 1UL);
	/* Where it is allowed; a run sees to it itself. */
	if (!backend.in_run)
		mlockall(MCL_CURRENT);
	/* A run has a time of its own. */
	if (!backend.context)
		backend.epoch = timedc_clock_ns(CLOCK_MONOTONIC);
}

/* Whether a call of the library did what it is for. When the run is over the task ends. */
static bool done(onbeat_status status)
{
	if (status == ONBEAT_STOPPED) {
		stopped = true;
		if (!timedc_self || !timedc_self->over)
			timedc_stop();
	}
	if (status < 0)
		timedc_die("%s", onbeat_last_error());
	return status == ONBEAT_OK;
}

void timedc_backend_begin(void)
{
	if (!backend.context || backend.begun)
		return;
	if (!backend.in_run) {
		done(onbeat_start(backend.context));
	} else if (!nc_timedc_begin()) {
		stopped = true;
		timedc_stop();
	}
	int32_t clock;
	int64_t at;
	onbeat_status status = onbeat_machine_time(backend.context, 0, &clock, &at);
	backend.is_virtual = status == ONBEAT_E_REFUSED;
	const char *cores = secure_getenv("ONBEAT_CORES");
	backend.shares_processors = backend.is_virtual && cores && *cores;
	if (!backend.is_virtual && done(status))
		backend.clock = clock;
	backend.begun = true;
}

onbeat *timedc_backend_context(void)
{
	return backend.context;
}

clockid_t timedc_backend_timer_clock(void)
{
	return backend.clock;
}

timedc_ns timedc_backend_machine_time(timedc_ns at)
{
	int32_t clock;
	int64_t machine_ns = TIMEDC_INFTY;
	if (!backend.context)
		return timedc_add(at, backend.epoch);
	onbeat_machine_time(backend.context, at, &clock, &machine_ns);
	return machine_ns;
}

timedc_ns timedc_now(void)
{
	int64_t now = 0;
	if (!backend.context)
		return timedc_clock_ns(CLOCK_MONOTONIC) - backend.epoch;
	if (backend.begun)
		onbeat_now(backend.context, &now);
	return now;
}

static struct timespec timespec_of(timedc_ns ns)
{
	return (struct timespec){.tv_sec = ns / TIMEDC_NS_IN_SEC, .tv_nsec = ns % TIMEDC_NS_IN_SEC};
}

void timedc_sleep_until(timedc_ns at)
{
	if (backend.context) {
		done(onbeat_sleep_until(backend.context, at, NULL));
		return;
	}
	struct timespec until = timespec_of(timedc_add(at, backend.epoch));
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void timedc_backend_look(void)
{
	if (backend.context && backend.begun)
		done(onbeat_sleep_until(backend.context, 0, NULL));
}

bool timedc_pass(const struct timedc_thread *thread, timedc_ns span, timedc_ns limit)
{
	timedc_ns deadline;
	int priority = timedc_urgency(thread, &deadline);
	return done(onbeat_work_until(backend.context, span, limit, priority, deadline));
}

void timedc_take_turn(const struct timedc_thread *thread)
{
	if (backend.shares_processors)
		timedc_pass(thread, 0, TIMEDC_INFTY);
}

void timedc_hand_over(void)
{
	if (!backend.shares_processors)
		timedc_backend_look();
}

void timedc_wait_for(const uint32_t *word, pid_t holder)
{
	done(onbeat_wait_for(backend.context, word, *word, INT64_MAX, (uint32_t)holder));
}

bool timedc_wait(const uint32_t *word, uint32_t value, timedc_ns until)
{
	if (backend.context) {
		timedc_begin();
		return done(onbeat_wait(backend.context, word, value, until));
	}
	struct timespec end = timespec_of(timedc_add(until, backend.epoch));
	const struct timespec *limit = until == TIMEDC_INFTY ? NULL : &end;
	int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
	long result = syscall(SYS_futex, word, operation, value, limit, NULL, ~0U);
	return result == 0 || errno != ETIMEDOUT;
}

void timedc_wake(const uint32_t *word)
{
	if (backend.context && backend.begun)
		onbeat_wake(backend.context, word);
	else if (!backend.context)
		syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX);
}

bool timedc_backend_create(struct timedc_thread *thread, void *(*body)(void *thread))
{
	if (backend.context)
		return done(onbeat_thread_create(backend.context, body, thread, &thread->member));
	return pthread_create(&thread->native, NULL, body, thread) == 0;
}

void timedc_backend_join(struct timedc_thread *thread)
{
	if (!backend.context)
		pthread_join(thread->native, NULL);
	else if (onbeat_thread_join(thread->member, NULL) == ONBEAT_STOPPED)
		stopped = true;
}
