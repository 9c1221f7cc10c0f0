/*
 * timedc_freertos.h: what Timed C translated for FreeRTOS has beyond timedc.h. The compiler reads
 * it before the program (-include), so it includes nothing of FreeRTOS.
 *
 * docs/timed-c-freertos.md says what is different on FreeRTOS.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <timedc.h>

/* Aborts the current segment when its deadline has come; the translator writes it behind statements
 * and into every round of a loop. */
void timedc_poll(void);

/* FreeRTOS schedules by fixed priorities only. */
#define timedc_spolicy(policy) \
	__extension__({ \
		_Static_assert((policy) != TIMEDC_EDF, \
			       "FreeRTOS has fixed priorities only: EDF is not available"); \
		(timedc_spolicy)(policy); \
	})

/* --- for a firmware that has a main of its own ----------------------------------------------- */

/* Makes the task that runs the program's main; to be called before vTaskStartScheduler. What main
 * returns goes to `ended`, in that task, when all tasks of the program are over. -1: no memory. */
int timedc_freertos_start(int (*program)(int, char **), int argc, char **argv,
			  void (*ended)(int status));

/* A firmware may define these. What tasks did, as in a trace (docs/timed-c.md); it is called with
 * the time since the program's start, and must not wait. And where lines for people go: by default
 * to standard error. */
void timedc_traced(timedc_ns at, const char *task, const char *event, const char *place,
		   timedc_ns value);
void timedc_say(const char *line);
