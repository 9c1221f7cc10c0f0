/*
 * zenoh; the calls of its Rust library are in ../zenoh.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"

#include <unistd.h>

const void *zenoh_talker(void);
void zenoh_put(const void *publisher, const struct bench_message *message);
void zenoh_listener(void (*arrived)(const struct bench_message *));

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };
	const void *publisher = zenoh_talker();

	(void)variant;
	while (bench_next(&message))
		zenoh_put(publisher, &message);
}

void bench_listener(const char *variant)
{
	(void)variant;
	zenoh_listener(bench_arrived);
	bench_ready();
	for (;;)
		pause();
}
