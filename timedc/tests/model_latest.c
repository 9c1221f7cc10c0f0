/*
 * model_latest.c: an lvchannel in every order of steps of its writer and its readers: what is read
 * is whole, not older than what was the latest when the read began, and never goes back. No thread
 * waits. With BROKEN the writer does not look whether a buffer is read.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "explore.h"

#undef TIMEDC_READERS
#define TIMEDC_READERS 2

#ifdef BROKEN
#undef __atomic_load_n
#define __atomic_load_n(place, order) \
	(step(), (order) == __ATOMIC_ACQUIRE ? 0 : *(volatile __typeof__(place))(place))
#endif

#include "../src/latest.c"

#undef memcpy

struct value {
	uint32_t number, copy;
};

static struct {
	struct timedc_latest latest;
	struct value values[BUFFERS];
	uint32_t begun, written;
} all;

static void writes_four(int self)
{
	(void)self;
	for (uint32_t number = 1; number <= 4; number++) {
		struct value value = {number, number};
		all.begun = number;
		expect(timedc_latest_write(&all.latest, &value) == 0, "a write is refused");
		all.written = number;
	}
}

static void reads_two(int self)
{
	uint32_t last = 0;

	(void)self;
	for (int i = 0; i < 2; i++) {
		struct value value;
		uint32_t least = all.written;
		timedc_latest_read(&all.latest, &value);
		expect(value.number == value.copy, "a value is torn");
		expect(value.number >= least, "a value is older than the latest");
		expect(value.number <= all.begun, "a value is from the future");
		expect(value.number >= last, "a reader goes back");
		last = value.number;
	}
}

static void at_end(void)
{
	const struct state *state = state_of(&all.latest);

	for (int i = 0; i < thread_count; i++)
		expect(threads[i].done, "somebody waits");
	for (unsigned i = 0; i < BUFFERS; i++)
		expect(i == state->latest >> BUFFER_SHIFT || state->users[i] == 0,
		       "a buffer is not given back");
}

int main(void)
{
	for (int readers = 1; readers <= 2; readers++) {
		memset(&all, 0, sizeof(all));
		all.latest = (struct timedc_latest){
			.name = "latest", .values = all.values, .size = sizeof(struct value)};
		explore_all(readers == 1 ? "writer, reader" : "writer, 2 readers", &all,
			    sizeof(all), 1 + readers,
			    (void (*const[])(int)){writes_four, reads_two, reads_two});
	}
	return 0;
}
