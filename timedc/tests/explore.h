/*
 * explore.h: runs a few threads in every order in which their steps can follow each other. A step
 * is an atomic operation, or half of a copy. The threads are coroutines; the explorer goes back by
 * putting their stacks and the shared memory back as they were, and continues from no state twice.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include "../src/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define THREADS_MAX 4
#define STACK_OCTETS 8192
#define SEEN_MAX (1U << 24)

struct coroutine {
	ucontext_t context;
	char *live; /* from here to its end the stack is in use */
	void (*body)(int self);
	bool done;
	const uint32_t *waits; /* while this is `value` */
	uint32_t value;
	char stack[STACK_OCTETS] __attribute__((aligned(64)));
};

static struct coroutine threads[THREADS_MAX];
static int thread_count, current;
static ucontext_t explorer;
static void *shared;
static size_t shared_size;
static uint64_t *seen;
static unsigned states, ends;

/* Of the test: looks at a state in which no thread continues. */
static void at_end(void);

static void expect(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "after %u states: %s\n", states, what);
	_Exit(1);
}

static __attribute__((noinline)) void step(void)
{
	threads[current].live = __builtin_frame_address(0);
	swapcontext(&threads[current].context, &explorer);
}

static void copy_in_halves(void *to, const void *from, size_t size)
{
	step();
	__builtin_memcpy(to, from, size / 2);
	step();
	__builtin_memcpy((char *)to + size / 2, (const char *)from + size / 2, size - size / 2);
}

/* --- what the sources under test call --------------------------------------------------------- */

_Thread_local struct timedc_thread *timedc_self;
bool timedc_tracing;

bool timedc_wait(const uint32_t *word, uint32_t value, timedc_ns until)
{
	(void)until;
	step();
	if (*word != value)
		return true;
	threads[current].waits = word;
	threads[current].value = value;
	step();
	return true;
}

void timedc_wake(const uint32_t *word)
{
	step();
#ifndef WITHOUT_WAKE
	for (int i = 0; i < thread_count; i++)
		if (threads[i].waits == word)
			threads[i].waits = NULL;
#endif
	(void)word;
}

timedc_ns timedc_limit(const struct timedc_thread *thread)
{
	(void)thread;
	return TIMEDC_INFTY;
}

void timedc_wait_begins(struct timedc_thread *thread)
{
	(void)thread;
}

void timedc_wait_ends(struct timedc_thread *thread)
{
	(void)thread;
}

void timedc_expire(struct timedc_thread *thread)
{
	(void)thread;
}

void timedc_abort_if_due(struct timedc_thread *thread)
{
	(void)thread;
}

timedc_ns timedc_now(void)
{
	return 0;
}

void timedc_trace_add(struct timedc_thread *thread, enum timedc_event event, const char *place,
		      timedc_ns at, timedc_ns value)
{
	(void)thread, (void)event, (void)place, (void)at, (void)value;
}

/* --- the explorer ----------------------------------------------------------------------------- */

static void enter(int self)
{
	threads[self].body(self);
	threads[self].done = true;
	threads[self].live = threads[self].stack + STACK_OCTETS;
	swapcontext(&threads[self].context, &explorer);
}

static uint64_t mix(uint64_t hash, const void *from, size_t size)
{
	const unsigned char *octet = from;

	for (; size >= 8; size -= 8, octet += 8) {
		uint64_t word;
		__builtin_memcpy(&word, octet, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	for (; size > 0; size--, octet++)
		hash = (hash ^ *octet) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

/* Whether this state is new. */
static bool visit(void)
{
	uint64_t hash = mix(1, shared, shared_size);

	for (int i = 0; i < thread_count; i++) {
		const struct coroutine *thread = &threads[i];
		hash = mix(hash + thread->done, &thread->waits, sizeof(thread->waits));
		if (thread->done)
			continue;
		hash = mix(hash, &thread->context.uc_mcontext, sizeof(thread->context.uc_mcontext));
		hash = mix(hash, thread->live, (size_t)(thread->stack + STACK_OCTETS - thread->live));
	}
	hash |= 1;
	unsigned at = (unsigned)(hash >> 20) % SEEN_MAX;
	for (; seen[at] != 0; at = (at + 1) % SEEN_MAX)
		if (seen[at] == hash)
			return false;
	seen[at] = hash;
	expect(++states < SEEN_MAX / 2, "too many states");
	return true;
}

static void explore(void)
{
	bool any = false;

	if (!visit())
		return;
	size_t size = sizeof(threads[0]) * (size_t)thread_count;
	char *kept = malloc(size + shared_size);
	__builtin_memcpy(kept, threads, size);
	__builtin_memcpy(kept + size, shared, shared_size);
	for (int i = 0; i < thread_count; i++) {
		if (threads[i].done || threads[i].waits)
			continue;
		any = true;
		current = i;
		swapcontext(&explorer, &threads[i].context);
		explore();
		__builtin_memcpy(threads, kept, size);
		__builtin_memcpy(shared, kept + size, shared_size);
	}
	free(kept);
	if (!any) {
		ends++;
		at_end();
	}
}

/* All orders of these threads, on `size` octets of shared memory as they are now. */
static void explore_all(const char *name, void *memory, size_t size, int count,
			void (*const bodies[])(int self))
{
	memset(threads, 0, sizeof(threads));
	free(seen);
	seen = calloc(SEEN_MAX, sizeof(*seen));
	expect(seen != NULL, "no memory");
	states = ends = 0;
	shared = memory;
	shared_size = size;
	thread_count = count;
	for (int i = 0; i < count; i++) {
		struct coroutine *thread = &threads[i];
		thread->body = bodies[i];
		thread->live = thread->stack + STACK_OCTETS;
		getcontext(&thread->context);
		thread->context.uc_stack.ss_sp = thread->stack;
		thread->context.uc_stack.ss_size = STACK_OCTETS;
		makecontext(&thread->context, (void (*)(void))enter, 1, i);
	}
	explore();
	expect(ends > 0, "nothing ended");
	printf("%s: %u states, %u ends\n", name, states, ends);
}

#define __atomic_load_n(place, order) (step(), __atomic_load_n(place, order))
#define __atomic_store_n(place, value, order) (step(), __atomic_store_n(place, value, order))
#define __atomic_exchange_n(place, value, order) (step(), __atomic_exchange_n(place, value, order))
#define __atomic_add_fetch(place, value, order) (step(), __atomic_add_fetch(place, value, order))
#define __atomic_sub_fetch(place, value, order) (step(), __atomic_sub_fetch(place, value, order))
#define __atomic_fetch_add(place, value, order) (step(), __atomic_fetch_add(place, value, order))
#define __atomic_compare_exchange_n(place, from, to, weak, order, otherwise) \
	(step(), __atomic_compare_exchange_n(place, from, to, weak, order, otherwise))
#define memcpy copy_in_halves
