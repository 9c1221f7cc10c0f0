/*
 * signals.h: the signal by which aborts come.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* What a task's timer sends it. */
#define TIMEDC_ABORT_SIGNAL (SIGRTMAX - 3)

/* Sets its handler: false if that cannot be. */
bool timedc_signal_take(void (*on_signal)(int number, siginfo_t *information, void *context));
/* The calling thread gets it. */
void timedc_signal_unblock(void);
