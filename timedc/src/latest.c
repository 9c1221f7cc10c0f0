/*
 * latest.c: lvchannels, for one writer and several readers, none of whom ever waits.
 *
 * One word names the buffer of the latest value and counts the reads of it that began: a reader
 * adds one to it and knows by that which buffer it reads. When it has read, it takes one off the
 * buffer's users. The writer fills a buffer without users, makes it the latest by one exchange,
 * and adds the count that it got back to the old one's users: those that have not finished are
 * left. So a buffer that anybody reads is never written. With two buffers more than readers one is
 * always free.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <string.h>

#define BUFFERS (TIMEDC_READERS + 2)
/* Of `latest`: the buffer above, the count below. */
#define BUFFER_SHIFT 56

/* All is 0 at first: the latest value is buffer 0's, and that is 0. */
struct state {
	uint32_t writing;
	uint64_t latest __attribute__((aligned(8)));
	uint32_t users[BUFFERS];
};
_Static_assert(sizeof(struct state) <= sizeof(((struct timedc_latest *)0)->state), "it has room");

static struct state *state_of(struct timedc_latest *latest)
{
	return (struct state *)(((uintptr_t)latest->state + 7) & ~(uintptr_t)7);
}

static void *buffer_of(struct timedc_latest *latest, unsigned buffer)
{
	return (char *)latest->values + (size_t)buffer * latest->size;
}

/* A buffer without a reader, or BUFFERS: only when more tasks read than may. */
static unsigned unused_buffer(const struct state *state, unsigned latest)
{
	for (unsigned i = 1; i < BUFFERS; i++) {
		unsigned buffer = (latest + i) % BUFFERS;
		if (__atomic_load_n(&state->users[buffer], __ATOMIC_ACQUIRE) == 0)
			return buffer;
	}
	return BUFFERS;
}

static bool give(struct timedc_latest *latest, const void *value)
{
	struct state *state = state_of(latest);
	uint64_t now = __atomic_load_n(&state->latest, __ATOMIC_RELAXED);
	unsigned buffer = unused_buffer(state, (unsigned)(now >> BUFFER_SHIFT));
	if (buffer == BUFFERS)
		return false;
	memcpy(buffer_of(latest, buffer), value, latest->size);
	uint64_t old = __atomic_exchange_n(&state->latest, (uint64_t)buffer << BUFFER_SHIFT,
					   __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&state->users[old >> BUFFER_SHIFT], (uint32_t)old, __ATOMIC_ACQ_REL);
	return true;
}

static void take(struct timedc_latest *latest, void *value)
{
	struct state *state = state_of(latest);
	uint64_t now = __atomic_fetch_add(&state->latest, 1, __ATOMIC_ACQ_REL);
	unsigned buffer = (unsigned)(now >> BUFFER_SHIFT);
	memcpy(value, buffer_of(latest, buffer), latest->size);
	__atomic_sub_fetch(&state->users[buffer], 1, __ATOMIC_ACQ_REL);
}

/* 1 when another write is in progress, or more tasks read than may: nothing was written. */
static int write(struct timedc_latest *latest, const void *value, bool traced)
{
	struct timedc_thread *thread = timedc_defer();
	struct state *state = state_of(latest);
	bool written = false;
	if (!__atomic_exchange_n(&state->writing, 1, __ATOMIC_ACQUIRE)) {
		written = give(latest, value);
		__atomic_store_n(&state->writing, 0, __ATOMIC_RELEASE);
	}
	if (traced && timedc_tracing && thread)
		timedc_trace(thread, written ? TIMEDC_E_WRITE : TIMEDC_E_FULL, latest->name,
			     timedc_now(), 0);
	timedc_resume(thread);
	return !written;
}

int timedc_latest_init(struct timedc_latest *latest, const void *value)
{
	return write(latest, value, false);
}

int timedc_latest_write(struct timedc_latest *latest, const void *value)
{
	return write(latest, value, true);
}

int timedc_latest_read(struct timedc_latest *latest, void *value)
{
	struct timedc_thread *thread = timedc_defer();
	take(latest, value);
	if (timedc_tracing && thread)
		timedc_trace(thread, TIMEDC_E_READ, latest->name, timedc_now(), 0);
	timedc_resume(thread);
	return 0;
}

int timedc_latest_count(struct timedc_latest *latest)
{
	(void)latest;
	return 1;
}
