/*
 * counts.c: two firm tasks with different deadlines and functions inside. Which segment is aborted
 * does not depend on the machine: one never ends, or it has no deadline. Prints how many were
 * aborted. Argument: rounds of the slower task, of 20 ms each.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "generated.h"

#include <stdio.h>
#include <stdlib.h>

static const struct timedc_point points[];
static int rounds;
static int slow_aborted, slow_ended, fast_aborted, fast_ended, wrong;

/* Every second segment never ends; the first of the task does not either. */
static void slow(void)
{
	TIMEDC_FRAME;
	int round, ended;
	TIMEDC_KEEP(round);
	TIMEDC_KEEP(ended);
	timedc_keep_phase(1);
	for (round = 0; round < rounds; round++) {
		timedc_ns deadline = round % 2 ? TIMEDC_INFTY : 7 * MS;
		TIMEDC_KEEP(deadline);
		ended = 0;
		TIMEDC_SYNC();
		TIMEDC_GUARD(&points[0], deadline, point);
		if (round % 2 == 0)
			forever(20);
		ended = 1;
		TIMEDC_SYNC();
point:
		timedc_point(&points[0], 20 * MS, deadline);
		slow_aborted += timedc_aborted();
		slow_ended += ended;
		wrong += ended == timedc_aborted();
		TIMEDC_SYNC();
	}
}

/* Every third segment never ends. */
static void fast(void)
{
	TIMEDC_FRAME;
	int round, ended;
	TIMEDC_KEEP(round);
	TIMEDC_KEEP(ended);
	timedc_keep_phase(1);
	for (round = 0; round < 2 * rounds; round++) {
		timedc_ns deadline = round % 3 ? TIMEDC_INFTY : 3 * MS;
		TIMEDC_KEEP(deadline);
		ended = 0;
		TIMEDC_SYNC();
		TIMEDC_GUARD(&points[1], deadline, point);
		if (round % 3 == 0)
			forever(3);
		ended = 1;
		TIMEDC_SYNC();
point:
		timedc_point(&points[1], 10 * MS, deadline);
		fast_aborted += timedc_aborted();
		fast_ended += ended;
		wrong += ended == timedc_aborted();
		TIMEDC_SYNC();
	}
}

TASK(slow, 20 * MS, 7 * MS);
TASK(fast, 10 * MS, 3 * MS);
UNIT(&slow_task, &fast_task)
static const struct timedc_point points[] = {POINT(33, FIRM, -3), POINT(62, FIRM, -3)};

static void run(void)
{
	TIMEDC_MAIN(&main_task);
	timedc_start(&slow_task, NULL);
	timedc_start(&fast_task, NULL);
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? atoi(argv[1]) : 0;
	run();
	fprintf(stderr, "slow %d aborted %d ended, fast %d aborted %d ended, %d wrong\n",
		slow_aborted, slow_ended, fast_aborted, fast_ended, wrong);
	return 0;
}
