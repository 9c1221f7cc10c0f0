/*
 * ends.c: how programs end. Argument: "hard" misses a hard deadline; "run" continues until the run
 * is over, main at a channel too; "threads" calls what is deferred from a thread that is no task.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "generated.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct timedc_point points[];
TIMEDC_FIFO(static, int, numbers, 8);

void timedc_safe_state(void)
{
	fputs("safe\n", stderr);
}

static void hard(void)
{
	TIMEDC_FRAME;
	TIMEDC_GUARD(&points[0], 5 * MS, point);
	forever(2);
point:
	timedc_point(&points[0], 10 * MS, 5 * MS);
	fputs("it went on\n", stderr);
}

static void writes(void)
{
	for (int i = 0;; i++) {
		cwrite(numbers, i);
		timedc_point(&points[1], 10 * MS, TIMEDC_SAME);
	}
}

static void reads(void)
{
	int value, count = 0;

	for (;; count += value > 0)
		cread(numbers, value);
}

TASK(hard, 10 * MS, 5 * MS);
TASK(writes, 10 * MS, 10 * MS);
TASK(reads, 0, 0);
static const struct timedc_point points[] = {POINT(30, HARD, -3), POINT(39, SOFT, -3)};
UNIT(&hard_task, &writes_task, &reads_task)

static void *outside(void *argument)
{
	char *text = malloc(100);
	FILE *file = fopen("/dev/null", "w");

	fprintf(file, "%p\n", argument);
	fclose(file);
	free(text);
	fputs("outside\n", stderr);
	return NULL;
}

/* Before main, too. */
__attribute__((constructor)) static void early(void)
{
	free(malloc(10));
}

int main(int argc, char **argv)
{
	TIMEDC_MAIN(&main_task);
	pthread_t thread;
	int value = 0;

	if (argc > 1 && strcmp(argv[1], "hard") == 0) {
		timedc_start(&hard_task, NULL);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "threads") == 0) {
		pthread_create(&thread, NULL, outside, NULL);
		return pthread_join(thread, NULL);
	}
	timedc_start(&writes_task, NULL);
	timedc_start(&reads_task, NULL);
	while (value >= 0)
		cread(numbers, value);
	return EXIT_FAILURE;
}
