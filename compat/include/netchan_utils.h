/*
 * netchan_utils.h: time constants, timespec helpers and the periodic timer.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <stdint.h>
#include <time.h>
#ifdef __GLIBC__
#include <bits/types/struct_timespec.h> /* in strict C99 time.h is without it */
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define US_IN_MS (1000L)
#define NS_IN_US (1000L)
#define NS_IN_MS (1000L * NS_IN_US)
#define NS_IN_SEC (1000L * NS_IN_MS)
#define NS_IN_HOUR (3600L * NS_IN_SEC)

/* Carries whole seconds from tv_nsec, of either sign, into tv_sec. NULL is allowed. */
static inline void ts_normalize(struct timespec *ts)
{
	if (!ts)
		return;
	ts->tv_sec += ts->tv_nsec / NS_IN_SEC;
	ts->tv_nsec %= NS_IN_SEC;
	if (ts->tv_nsec < 0) {
		ts->tv_nsec += NS_IN_SEC;
		ts->tv_sec--;
	}
}

/* Later by `add` ns. NULL is allowed. */
static inline void ts_add_ns(struct timespec *ts, uint64_t add)
{
	if (!ts)
		return;
	ts->tv_sec += (time_t)(add / (uint64_t)NS_IN_SEC);
	ts->tv_nsec += (long)(add % (uint64_t)NS_IN_SEC);
	ts_normalize(ts);
}

/* Earlier by `sub` ns. NULL is allowed. */
static inline void ts_subtract_ns(struct timespec *ts, uint64_t sub)
{
	if (!ts)
		return;
	ts->tv_sec -= (time_t)(sub / (uint64_t)NS_IN_SEC);
	ts->tv_nsec -= (long)(sub % (uint64_t)NS_IN_SEC);
	ts_normalize(ts);
}

struct channel_attrs;
struct periodic_timer;

/*
 * A timer with a cycle of `phase_ns`, whose first cycle ends at base_ns + phase_ns on the clock
 * `clockid` (CLOCK_MONOTONIC, CLOCK_REALTIME or CLOCK_TAI; CLOCK_TAI is the network clock). A base
 * of 0 is the present. NULL for a cycle of 0, another clock, or a base more than one cycle past.
 * In a run each clock is the network clock. The caller frees it with free().
 */
struct periodic_timer *pt_init(uint64_t base_ns, uint64_t phase_ns, int clockid);

/* A timer from now on with the channel's interval, on the network clock. */
struct periodic_timer *pt_init_from_attr(struct channel_attrs *attr);

/*
 * Waits until the current cycle ends: 0, or -1 (NULL, or the run is over), or -ETIMEDOUT when the
 * deadline of a task of Timed C comes first. Ends of cycles do not
 * drift; one that has passed already returns at once.
 */
int pt_next_cycle(struct periodic_timer *pt);

#ifdef __cplusplus
}
#endif
