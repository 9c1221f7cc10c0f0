/*
 * policies.c: tasks with policies print what they got.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "generated.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static const struct timedc_point points[];

static void show(const char *name)
{
	struct sched_param parameters;

	/* All have asked by then. */
	timedc_point(&points[0], 200 * MS, TIMEDC_SAME);
	sched_getparam(0, &parameters);
	printf("%s %d %d\n", name, sched_getscheduler(0), parameters.sched_priority);
}

static void rate_5(void)
{
	timedc_spolicy(TIMEDC_FIFO_RM);
	show("rate_5");
}

static void rate_20(void)
{
	timedc_spolicy(TIMEDC_RR_RM);
	show("rate_20");
}

static void separate_10(void)
{
	timedc_spolicy(TIMEDC_FIFO_RM);
	timedc_aperiodic(10 * MS);
	show("separate_10");
}

static void deadline_8(void)
{
	timedc_spolicy(TIMEDC_FIFO_DM);
	show("deadline_8");
}

static void stated(void)
{
	timedc_spriority(7);
	show("stated");
}

TASK(rate_5, 5 * MS, 5 * MS);
TASK(rate_20, 20 * MS, 20 * MS);
TASK(separate_10, 0, 0);
TASK(deadline_8, 20 * MS, 8 * MS);
TASK(stated, 0, 0);
static const struct timedc_point points[] = {POINT(1, SOFT, -3)};
UNIT(&rate_5_task, &rate_20_task, &separate_10_task, &deadline_8_task, &stated_task)

int main(void)
{
	TIMEDC_MAIN(&main_task);
	timedc_start(&rate_5_task, NULL);
	timedc_start(&rate_20_task, NULL);
	timedc_start(&separate_10_task, NULL);
	timedc_start(&deadline_8_task, NULL);
	timedc_start(&stated_task, NULL);
	return 0;
}
