/*
 * fifo.c: fifochannels, for any number of writers and readers.
 *
 * A writer takes a free cell, fills it, and puts its number into a ring; a reader takes the oldest
 * number out of the ring, copies the value, and frees the cell. Ring and free cells change by one
 * compare-and-swap at a time, and whoever finds another's operation half done completes it. So no
 * task ever waits for another one that was preempted: of the operations in progress one always
 * succeeds, and one is tried again only when another has succeeded in between. A cell counts as
 * taken until its value has been copied.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <string.h>

/* Of `turn`: the position's round above, whether it is taken, the number of the cell below. */
#define TURN_FULL 0x80000000ULL
#define TURN_CELL 0x7fffffffULL
#define NO_CELL (~0U)

/* Positions count up for ever: where the next value goes, and where the oldest is. All is 0 at
 * first. */
struct state {
	uint64_t tail;
	uint64_t head;
	uint64_t free;    /* a stack: changes above, the first cell + 1 below */
	uint32_t fresh;   /* cells from here on were never used */
	uint32_t written; /* counts writes, for readers to wait at */
	uint32_t waiting;
	uint32_t dropped;
	struct timedc_fifo *next; /* of those that dropped values */
};
_Static_assert(sizeof(struct state) <= sizeof(((struct timedc_fifo *)0)->state), "it has room");

static struct timedc_fifo *dropping;

static struct state *state_of(struct timedc_fifo *fifo)
{
	return (struct state *)fifo->state;
}

#define LOAD(place) __atomic_load_n(place, __ATOMIC_SEQ_CST)
#define SWAP(place, from, to) \
	__atomic_compare_exchange_n(place, from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

static unsigned take_cell(struct timedc_fifo *fifo)
{
	struct state *state = state_of(fifo);
	for (uint64_t top = LOAD(&state->free); (uint32_t)top != 0;) {
		unsigned cell = (uint32_t)top - 1;
		uint64_t next = LOAD(&fifo->cells[cell].next);
		if (SWAP(&state->free, &top, ((top >> 32) + 1) << 32 | next))
			return cell;
	}
	for (uint32_t fresh = LOAD(&state->fresh); fresh < fifo->capacity;)
		if (SWAP(&state->fresh, &fresh, fresh + 1))
			return fresh;
	return NO_CELL;
}

static void free_cell(struct timedc_fifo *fifo, unsigned cell)
{
	struct state *state = state_of(fifo);
	uint64_t top = LOAD(&state->free);
	do
		__atomic_store_n(&fifo->cells[cell].next, (uint32_t)top, __ATOMIC_SEQ_CST);
	while (!SWAP(&state->free, &top, ((top >> 32) + 1) << 32 | (cell + 1)));
}

/* There is room: there are as many positions as cells, and this cell is not in the ring. */
static void put(struct timedc_fifo *fifo, unsigned cell)
{
	struct state *state = state_of(fifo);
	for (;;) {
		uint64_t tail = LOAD(&state->tail);
		uint64_t round = (tail / fifo->capacity) << 32;
		unsigned long long *turn = &fifo->cells[tail % fifo->capacity].turn;
		unsigned long long empty = round;
		bool done = SWAP(turn, &empty, round | TURN_FULL | cell);
		SWAP(&state->tail, &tail, tail + 1);
		if (done)
			return;
	}
}

static unsigned take(struct timedc_fifo *fifo)
{
	struct state *state = state_of(fifo);
	for (;;) {
		uint64_t head = LOAD(&state->head);
		uint64_t round = (head / fifo->capacity) << 32;
		unsigned long long *turn = &fifo->cells[head % fifo->capacity].turn;
		unsigned long long full = LOAD(turn);
		if (full == round)
			return NO_CELL;
		bool mine = (full & ~TURN_CELL) == (round | TURN_FULL);
		bool done = mine && SWAP(turn, &full, round + (1ULL << 32));
		SWAP(&state->head, &head, head + 1);
		if (done)
			return (unsigned)(full & TURN_CELL);
	}
}

static void *value_of(struct timedc_fifo *fifo, unsigned cell)
{
	return (char *)fifo->values + (size_t)cell * fifo->size;
}

static bool pop(struct timedc_fifo *fifo, void *value)
{
	unsigned cell = take(fifo);
	if (cell == NO_CELL)
		return false;
	memcpy(value, value_of(fifo, cell), fifo->size);
	free_cell(fifo, cell);
	return true;
}

static void drop(struct timedc_fifo *fifo)
{
	struct state *state = state_of(fifo);
	if (__atomic_fetch_add(&state->dropped, 1, __ATOMIC_RELAXED) > 0)
		return;
	state->next = LOAD(&dropping);
	while (!SWAP(&dropping, &state->next, fifo))
		;
}

static void note(struct timedc_thread *thread, enum timedc_event event, const char *channel)
{
	if (timedc_tracing && thread)
		timedc_trace(thread, event, channel, timedc_now(), 0);
}

int timedc_fifo_write(struct timedc_fifo *fifo, const void *value)
{
	struct timedc_thread *thread = timedc_defer();
	struct state *state = state_of(fifo);
	unsigned cell = take_cell(fifo);
	if (cell == NO_CELL) {
		drop(fifo);
		note(thread, TIMEDC_E_FULL, fifo->name);
	} else {
		memcpy(value_of(fifo, cell), value, fifo->size);
		put(fifo, cell);
		note(thread, TIMEDC_E_WRITE, fifo->name);
		__atomic_add_fetch(&state->written, 1, __ATOMIC_SEQ_CST);
		if (LOAD(&state->waiting) > 0)
			timedc_wake(&state->written);
	}
	timedc_resume(thread);
	return cell == NO_CELL;
}

int timedc_fifo_read(struct timedc_fifo *fifo, void *value)
{
	struct timedc_thread *thread = timedc_defer();
	struct state *state = state_of(fifo);
	timedc_wait_begins(thread);
	for (;;) {
		uint32_t written = LOAD(&state->written);
		if (pop(fifo, value))
			break;
		__atomic_add_fetch(&state->waiting, 1, __ATOMIC_SEQ_CST);
		bool in_time = timedc_wait(&state->written, written, timedc_limit(thread));
		__atomic_sub_fetch(&state->waiting, 1, __ATOMIC_SEQ_CST);
		if (!in_time)
			timedc_expire(thread);
	}
	timedc_wait_ends(thread);
	note(thread, TIMEDC_E_READ, fifo->name);
	timedc_resume(thread);
	return 0;
}

/* How many values wait: exact while no task writes or reads. */
int timedc_fifo_count(struct timedc_fifo *fifo)
{
	struct state *state = state_of(fifo);
	uint64_t head = LOAD(&state->head), tail = LOAD(&state->tail);
	return tail > head ? (int)(tail - head) : 0;
}

int timedc_fifo_init(struct timedc_fifo *fifo, const void *value)
{
	struct timedc_thread *thread = timedc_defer();
	(void)value;
	/* Not more than are there now: others may continue writing. */
	for (int count = timedc_fifo_count(fifo); count > 0; count--) {
		unsigned cell = take(fifo);
		if (cell == NO_CELL)
			break;
		free_cell(fifo, cell);
	}
	timedc_resume(thread);
	return 0;
}

void timedc_fifo_report(void)
{
	for (struct timedc_fifo *fifo = LOAD(&dropping); fifo; fifo = state_of(fifo)->next)
		fprintf(stderr, "timedc: fifochannel %s was full: %u values were dropped\n",
			fifo->name, state_of(fifo)->dropped);
}
