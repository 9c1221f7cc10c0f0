/*
 * ptp_getclock.h: what the clocks read.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <inttypes.h>
#include <netchan_utils.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The network clock in ns: the interface's PTP clock if it has one, else CLOCK_TAI; in a run
 * the host's copy of network time, which is 0 until the common start. Every instant that this
 * library takes or gives is of this clock.
 */
uint64_t tai_get_ns(void);

/* CLOCK_REALTIME in ns; in a run the same as tai_get_ns(). */
uint64_t real_get_ns(void);

/* The lower 32 bits, as frames carry them. */
uint32_t tai_to_avtp_ns(uint64_t tai_ns);

#ifdef __cplusplus
}
#endif
