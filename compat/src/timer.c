/*
 * timer.c: the periodic timer.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

struct periodic_timer {
	uint64_t next_ns;
	uint64_t phase_ns;
	int clock;
};

/* Whether `clock` is read through onbeat: in a run all are. */
static bool network(int clock)
{
	return clock == CLOCK_TAI || nc_in_run();
}

static uint64_t now_on(int clock)
{
	struct timespec ts;
	if (network(clock))
		return tai_get_ns();
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_IN_SEC + (uint64_t)ts.tv_nsec;
}

struct periodic_timer *pt_init(uint64_t base_ns, uint64_t phase_ns, int clockid)
{
	bool known = clockid == CLOCK_MONOTONIC || clockid == CLOCK_REALTIME || clockid == CLOCK_TAI;
	if (phase_ns == 0 || phase_ns > INT64_MAX / 2 || base_ns > INT64_MAX / 2 || !known)
		return NULL;
	uint64_t now = now_on(clockid);
	if (base_ns == 0)
		base_ns = now;
	if (base_ns + phase_ns < now)
		return NULL;
	struct periodic_timer *pt = malloc(sizeof(*pt));
	if (pt)
		*pt = (struct periodic_timer){base_ns + phase_ns, phase_ns, clockid};
	return pt;
}

struct periodic_timer *pt_init_from_attr(struct channel_attrs *attr)
{
	return attr ? pt_init(0, attr->interval_ns, CLOCK_TAI) : NULL;
}

/* When the calling thread may wait no longer, on a clock that is not read through onbeat. */
static uint64_t limit_on(int clock)
{
	int64_t limit = timedc_wait_limit();
	if (limit == INT64_MAX)
		return UINT64_MAX;
	int64_t now = (int64_t)tai_get_ns();
	return now_on(clock) + (limit > now ? (uint64_t)(limit - now) : 0);
}

static int sleep_until(int clock, uint64_t until_ns)
{
	onbeat *context = network(clock) ? nc_backend_context() : NULL;
	if (nc_in_run() && (!context || !nc_backend_begin()))
		return -1;
	if (context) {
		onbeat_status status = nc_sleep(context, (int64_t)until_ns, NULL);
		if (status == ONBEAT_TIMED_OUT)
			return -ETIMEDOUT;
		return status == ONBEAT_OK ? 0 : (nc_failure(NULL, status), -1);
	}
	uint64_t limit_ns = limit_on(clock), end_ns = until_ns < limit_ns ? until_ns : limit_ns;
	struct timespec ts = {.tv_sec = (time_t)(end_ns / NS_IN_SEC),
			      .tv_nsec = (long)(end_ns % NS_IN_SEC)};
	int result;
	do {
		result = clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL);
	} while (result == EINTR);
	if (result == 0 && limit_ns < until_ns)
		return -ETIMEDOUT;
	return result == 0 ? 0 : -1;
}

int pt_next_cycle(struct periodic_timer *pt)
{
	if (!pt)
		return -1;
	uint64_t until = pt->next_ns;
	pt->next_ns += pt->phase_ns;
	return sleep_until(pt->clock, until);
}
