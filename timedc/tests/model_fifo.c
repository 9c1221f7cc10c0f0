/*
 * model_fifo.c: a fifochannel in every order of steps of its writers and readers: each value is
 * read once, whole, and in the order in which its writer wrote it; no reader sleeps while a value
 * waits.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "explore.h"

#include "../src/fifo.c"

#undef memcpy

#define READS_MAX 4

struct value {
	uint32_t number, inverse;
};

/* All that threads share, and what they have seen. */
static struct {
	struct timedc_fifo fifo;
	struct timedc_cell cells[4];
	struct value values[4];
	uint32_t read[THREADS_MAX][READS_MAX];
	unsigned reads[THREADS_MAX];
	unsigned accepted, refused;
} all;

static int writes;

static void write_one(uint32_t number)
{
	struct value value = {number, ~number};

	if (timedc_fifo_write(&all.fifo, &value) == 0)
		all.accepted++;
	else
		all.refused++;
}

static void read_one(int self)
{
	struct value value;

	timedc_fifo_read(&all.fifo, &value);
	expect(value.inverse == ~value.number, "a value is torn");
	all.read[self][all.reads[self]++] = value.number;
}

/* The writer's number is the tens of its values. */
static void writes_two(int self)
{
	write_one((uint32_t)self * 10 + 1);
	write_one((uint32_t)self * 10 + 2);
}

static void writes_once(int self)
{
	write_one((uint32_t)self * 10 + 1);
}

static void reads_one(int self)
{
	read_one(self);
}

static void reads_two(int self)
{
	read_one(self);
	read_one(self);
}

static void at_end(void)
{
	unsigned total = 0, seen_once = 0;
	const struct state *state = (const struct state *)all.fifo.state;

	for (int i = 0; i < thread_count; i++) {
		for (unsigned j = 0; j < all.reads[i]; j++) {
			uint32_t value = all.read[i][j];
			unsigned bit = 1U << (value / 10 * 4 + value % 10);
			expect(!(seen_once & bit), "a value is read twice");
			seen_once |= bit;
			for (unsigned k = 0; k < j; k++)
				expect(all.read[i][k] / 10 != value / 10 || all.read[i][k] < value,
				       "values are out of order");
		}
		total += all.reads[i];
	}
	bool sleeping = false;
	for (int i = 0; i < thread_count; i++)
		sleeping |= threads[i].waits != NULL;
	expect(all.accepted - total == state->tail - state->head, "a value is lost");
	expect(!sleeping || state->tail == state->head, "a reader sleeps while a value waits");
	expect(all.refused == 0 || all.fifo.capacity < (unsigned)writes, "refused with room left");
}

static void explore_fifo(const char *name, unsigned capacity, int count, int write_count,
			 void (*const bodies[])(int self))
{
	memset(&all, 0, sizeof(all));
	all.fifo = (struct timedc_fifo){.name = "fifo", .values = all.values, .cells = all.cells,
					.size = sizeof(struct value), .capacity = capacity};
	dropping = NULL;
	writes = write_count;
	explore_all(name, &all, sizeof(all), count, bodies);
}

int main(void)
{
	explore_fifo("writer, reader, room for 1", 1, 2, 2,
		     (void (*const[])(int)){writes_two, reads_two});
	explore_fifo("writer, 2 readers, room for 2", 2, 3, 2,
		     (void (*const[])(int)){writes_two, reads_one, reads_one});
	explore_fifo("2 writers, reader, room for 1", 1, 3, 2,
		     (void (*const[])(int)){writes_once, writes_once, reads_two});
	explore_fifo("2 writers, reader, room for 2", 2, 3, 3,
		     (void (*const[])(int)){writes_two, writes_once, reads_two});
	explore_fifo("2 writers, 2 readers, room for 1", 1, 4, 2,
		     (void (*const[])(int)){writes_once, writes_once, reads_one, reads_one});
	return 0;
}
