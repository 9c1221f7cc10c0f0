/*
 * allocations.c: nothing is allocated on the way through points, guards, aborts and channels.
 * Counts all calls of the allocator, the library's own among them.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "generated.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 300

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static const struct timedc_point points[];
static unsigned allocated;
static int rounds, aborted;
TIMEDC_FIFO(static, int, numbers, 8);
TIMEDC_LATEST(static, int, latest);

void *malloc(size_t size)
{
	__atomic_add_fetch(&allocated, 1, __ATOMIC_SEQ_CST);
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	__atomic_add_fetch(&allocated, 1, __ATOMIC_SEQ_CST);
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	__atomic_add_fetch(&allocated, 1, __ATOMIC_SEQ_CST);
	return __libc_realloc(old, size);
}

static void on_late(const struct timedc_late *late)
{
	(void)late;
}

static void all(void)
{
	TIMEDC_FRAME;
	int value, round;
	unsigned before = 0;
	TIMEDC_KEEP(value);
	TIMEDC_KEEP(round);
	TIMEDC_KEEP(before);
	timedc_on_late(on_late);
	for (round = 0; round < ROUNDS; round++) {
		if (round == 1)
			before = __atomic_load_n(&allocated, __ATOMIC_SEQ_CST);
		TIMEDC_SYNC();
		timedc_point(&points[0], MS, TIMEDC_SAME);
		TIMEDC_GUARD(&points[1], MS, point_1);
		cwrite(numbers, round);
		cread(numbers, value);
		cwrite(latest, value);
		cread(latest, value);
		forever(2);
point_1:
		timedc_point(&points[1], MS, TIMEDC_SAME);
		aborted += timedc_aborted();
		TIMEDC_GUARD(&points[2], MS, point_2);
		cread(numbers, value);
point_2:
		timedc_point(&points[2], MS, TIMEDC_SAME);
		aborted += timedc_aborted();
		timedc_gettime(-3);
		TIMEDC_SYNC();
	}
	unsigned after = __atomic_load_n(&allocated, __ATOMIC_SEQ_CST);
	fprintf(stderr, "%d aborted, %u allocated\n", aborted, after - before);
	rounds = round;
}

TASK(all, MS, MS);
static const struct timedc_point points[] = {POINT(0, SOFT, -3), POINT(1, FIRM, -3),
					     POINT(2, HARD, -3)};
UNIT(&all_task)

int main(void)
{
	TIMEDC_MAIN(&main_task);
	timedc_start(&all_task, NULL);
	return 0;
}
