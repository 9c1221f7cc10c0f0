/* A firmware with a main of its own, and a program in it that misses a hard point. */
#include <timedc_freertos.h>

#include <FreeRTOS.h>
#include <task.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

static const struct timedc_point point = {"7", "main", "hard.c", 7, TIMEDC_HARD, -3};
static const struct timedc_task task = {"main", "hard.c", 1, 0, 0, 5000000, 5000000, 0};

void timedc_safe_state(void)
{
	puts("safe");
}

static int program(int argc, char **argv)
{
	TIMEDC_MAIN(&task);
	(void)argc;
	(void)argv;
	if (timedc_point(&point, 5000000, TIMEDC_SAME) != 0)
		return 1;
	shim_work(8);
	(void)timedc_point(&point, 5000000, TIMEDC_SAME);
	return 2;
}

int main(void)
{
	if (timedc_freertos_start(program, 0, NULL, exit) != 0)
		return 3;
	vTaskStartScheduler();
	return 4;
}
