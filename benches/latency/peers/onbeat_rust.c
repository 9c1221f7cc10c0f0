/*
 * Onbeat's Rust interface on a real interface; the calls are in ../onbeat.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"

void *onbeat_rust_talker(int64_t period_ns);
void onbeat_rust_write(void *talker, const struct bench_message *message);
void onbeat_rust_listener(int64_t period_ns, void (*ready)(void),
			  void (*arrived)(const struct bench_message *));

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };
	void *talker = onbeat_rust_talker(bench_period());

	(void)variant;
	while (bench_next(&message))
		onbeat_rust_write(talker, &message);
}

void bench_listener(const char *variant)
{
	(void)variant;
	onbeat_rust_listener(bench_period(), bench_ready, bench_arrived);
}
