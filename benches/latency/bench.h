/*
 * What every contestant shares: pacing, the stamped message, samples, one line of JSON.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Both namespaces have the same names; the runner (run.py) sets them up so. */
#define BENCH_INTERFACE "veth0"
#define BENCH_TALKER "10.77.0.1"
#define BENCH_LISTENER "10.77.0.2"
#define BENCH_PORT 7780
#define BENCH_SIZE 64

/* One message. The clock is the machine's, so that the difference is the one-way latency. */
struct bench_message {
	int64_t sent_ns;   /* CLOCK_MONOTONIC just before sending */
	uint64_t sequence; /* 0: warm-up, not counted */
	uint8_t rest[BENCH_SIZE - 16];
};

/* Each contestant provides these two, both for a task that waits for its messages. The talker
 * sends what `bench_next` stamps until that returns false; the listener says `bench_ready`, then
 * gives each message to `bench_arrived`, for ever: the runner ends it. */
void bench_talker(const char *variant);
void bench_listener(const char *variant);

/* Waits for the next period, then stamps `message`. False: the run is over. */
bool bench_next(struct bench_message *message);

/* The listener can receive from now on. */
void bench_ready(void);

/* One message is with the task. From one thread at a time. */
void bench_arrived(const struct bench_message *message);

/* The period in ns; 0 when flat out. */
int64_t bench_period(void);

/* CLOCK_MONOTONIC. */
int64_t bench_now(void);

/* Sleeps until that instant of CLOCK_MONOTONIC. */
void bench_sleep_until(int64_t until_ns);

/* Ends the program with what went wrong and, if it has one, errno. */
_Noreturn void bench_fail(const char *what);
