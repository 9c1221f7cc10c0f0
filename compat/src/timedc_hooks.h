/*
 * timedc_hooks.h: what the run time of Timed C and the compatibility library know of each other.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <onbeat.h>

/*
 * Makes this a program of Timed C: CLEANUP() by one of its tasks leaves the ends to the others,
 * and an end that is created again is the one that is there. In a run, joins it. The context whose
 * clock is tai_get_ns(): in a run the program's membership, or NULL, and a line that says why; on
 * interfaces that of the first, or NULL as long as there is none. It stays valid until the program
 * ends.
 */
onbeat *nc_timedc_context(void);

/* In a run: waits for the common start. False when the run is over or cannot start. */
bool nc_timedc_begin(void);

/*
 * The run time's: until when the calling thread may wait in this library, by tai_get_ns(). A call
 * that waits then returns -ETIMEDOUT, and has nothing locked. Without one: INT64_MAX.
 */
int64_t timedc_wait_limit(void);
