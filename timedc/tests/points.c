/*
 * points.c: what points, guards and channels do, for a run in virtual time: its trace is exact.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "generated.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct timedc_point points[];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
TIMEDC_FIFO(static, int, numbers, 2);
TIMEDC_LATEST(static, long, latest);

static void takes(int ms)
{
	timedc_work(ms * MS, ms * MS);
}

/* Lines 1 to 7: soft points, the phase, gettime, skipdelay. */
static void soft(void)
{
	takes(4);
	timedc_point(&points[1], 10 * MS, TIMEDC_SAME); /* on time: 10 */
	takes(25);
	if (timedc_point(&points[2], 10 * MS, TIMEDC_SAME) != 15) /* arrives at 35 */
		abort();
	timedc_point(&points[3], 10 * MS, TIMEDC_SAME); /* phase lost: 45 */
	timedc_keep_phase(1);
	takes(25);
	timedc_point(&points[4], 10 * MS, 5 * MS); /* arrives at 70, origin 55 */
	timedc_point(&points[5], 20 * MS, TIMEDC_SAME); /* caught up: 75 */
	takes(1);
	if (timedc_gettime(-3) != 76)
		abort();
	timedc_point(&points[6], 4 * MS, TIMEDC_SAME); /* 80 */
	takes(1);
	timedc_skip();
	timedc_point(&points[7], 10 * MS, TIMEDC_SAME); /* passed at 81 */
}

/* Lines 10 to 14: an abort in a function, in a critical block, with a lock, at a channel. */
static void firm(void)
{
	TIMEDC_FRAME;
	int value = 0;
	TIMEDC_KEEP(value);
	TIMEDC_GUARD(&points[10], 5 * MS, point_10);
	value = 1;
	TIMEDC_SYNC();
	forever(7);
	value = 2;
point_10:
	timedc_point(&points[10], 10 * MS, 5 * MS); /* aborted at 5 */
	if (value != 1 || !timedc_aborted())
		abort();
	TIMEDC_GUARD(&points[11], 5 * MS, point_11);
	{
		TIMEDC_CRITICAL;
		takes(7);
		value = 3;
		TIMEDC_SYNC();
	}
	value = 4;
	TIMEDC_SYNC();
point_11:
	if (timedc_point(&points[11], 10 * MS, 5 * MS) != 2 || value != 3) /* aborted at 17 */
		abort();
	TIMEDC_GUARD(&points[12], 5 * MS, point_12);
	pthread_mutex_lock(&mutex);
	takes(8);
	pthread_mutex_unlock(&mutex);
	value = 5;
	TIMEDC_SYNC();
point_12:
	if (timedc_point(&points[12], 10 * MS, 5 * MS) != 3 || value != 3) /* aborted at 28 */
		abort();
	TIMEDC_GUARD(&points[13], 5 * MS, point_13);
	cread(numbers, value); /* nobody writes before 42 */
point_13:
	timedc_point(&points[13], 10 * MS, 5 * MS); /* aborted at 35 */
	TIMEDC_GUARD(&points[14], 5 * MS, point_14);
	cread(numbers, value);
	TIMEDC_SYNC();
	takes(3);
point_14:
	timedc_point(&points[14], 10 * MS, 5 * MS); /* read at 42, arrives at 45: on time */
	if (value != 7 || timedc_aborted())
		abort();
}

static void on_late(const struct timedc_late *late)
{
	if (late->line == 21 && late->overshoot_ns != 3 * MS)
		abort();
}

static void gives_back(void *argument)
{
	*(int *)argument += 1;
}

/* Lines 20 to 23: hard points, deeds at the abort, gettime under a guard, sleep. */
static void hard(void)
{
	TIMEDC_FRAME;
	int given = 0;
	TIMEDC_KEEP(given);
	timedc_on_late(on_late);
	TIMEDC_GUARD(&points[20], 5 * MS, point_20);
	void *memory = malloc(10);
	timedc_on_abort(free, memory);
	timedc_on_abort(gives_back, &given);
	forever(1);
point_20:
	timedc_point(&points[20], 10 * MS, 5 * MS); /* aborted at 5 */
	TIMEDC_GUARD(&points[21], 5 * MS, point_21);
	{
		TIMEDC_CRITICAL;
		takes(8);
	}
point_21:
	timedc_point(&points[21], 10 * MS, 5 * MS); /* aborted at 18 */
	TIMEDC_GUARD(&points[22], 5 * MS, point_22);
	takes(4);
	timedc_gettime(-3); /* 24: the deadline is 29 now */
	takes(4);
point_22:
	timedc_point(&points[22], 10 * MS, 5 * MS); /* 28, released at 34 */
	TIMEDC_GUARD(&points[23], 5 * MS, point_23);
	usleep(8000); /* to 42 */
point_23:
	timedc_point(&points[23], 8 * MS, 5 * MS); /* aborted at 39, released at 42 */
	if (given != 1)
		abort();
	timedc_unguard(&timedc_frame);
	cwrite(numbers, 7);
	cwrite(latest, 1L << 40);
	takes(10);
	cwrite(numbers, 8);
	cwrite(numbers, 9);
	if (cwrite(numbers, 10) != 1 || nelem(numbers) != 2)
		abort();
	long got;
	cread(latest, got);
	if (got != 1L << 40)
		abort();
	cinit(numbers, 0);
	if (nelem(numbers) != 0)
		abort();
}

TASK(soft, 10 * MS, 10 * MS);
TASK(firm, 10 * MS, 5 * MS);
TASK(hard, 10 * MS, 5 * MS);
static const struct timedc_point points[] = {
	[1] = POINT(1, SOFT, -3),   [2] = POINT(2, SOFT, -3),   [3] = POINT(3, SOFT, -3),
	[4] = POINT(4, SOFT, -3),   [5] = POINT(5, SOFT, -3),   [6] = POINT(6, SOFT, -3),
	[7] = POINT(7, SOFT, -3),   [10] = POINT(10, FIRM, -3), [11] = POINT(11, FIRM, -3),
	[12] = POINT(12, FIRM, -3), [13] = POINT(13, FIRM, -3), [14] = POINT(14, FIRM, -3),
	[20] = POINT(20, HARD, -3), [21] = POINT(21, HARD, -3), [22] = POINT(22, HARD, -3),
	[23] = POINT(23, HARD, -3),
};
UNIT(&soft_task, &firm_task, &hard_task)

int main(void)
{
	TIMEDC_MAIN(&main_task);
	timedc_start(&soft_task, NULL);
	timedc_start(&firm_task, NULL);
	timedc_start(&hard_task, NULL);
	return 0;
}
