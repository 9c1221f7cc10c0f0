/*
 * transfers.c: channels between threads that run at once, some of which are aborted all the time.
 * What writers wrote is read once, in their order; the latest value is never torn and never goes
 * back.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "generated.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WRITERS 3
#define READERS 2
#define VALUES 50000
#define WORDS 24
#define LAST WRITERS

struct value {
	int writer;
	int number[WORDS];
};

static const struct timedc_point points[];
static int torn, disorder, backward, counts[WRITERS];
static volatile int finished;
TIMEDC_FIFO(static, struct value, queue, 64);
TIMEDC_LATEST(static, struct value, latest);

static struct value value_of(int writer, int number)
{
	struct value value = {.writer = writer};

	for (int i = 0; i < WORDS; i++)
		value.number[i] = number;
	return value;
}

static void check(const struct value *value)
{
	for (int i = 1; i < WORDS; i++)
		if (value->number[i] != value->number[0])
			__atomic_add_fetch(&torn, 1, __ATOMIC_RELAXED);
}

/* Writes all its values, though it is aborted every 200 us. */
static void writer(void)
{
	static int writers;
	int self = __atomic_fetch_add(&writers, 1, __ATOMIC_RELAXED);
	TIMEDC_FRAME;
	int number = 0;
	TIMEDC_KEEP(self);
	TIMEDC_KEEP(number);
	while (number < VALUES) {
		TIMEDC_SYNC();
		TIMEDC_GUARD(&points[0], 200000, point);
		while (number < VALUES) {
			struct value value = value_of(self, number);
			{
				TIMEDC_CRITICAL;
				if (cwrite(queue, value) == 0)
					number++;
				else
					usleep(20);
				TIMEDC_SYNC();
			}
			if (self == 0)
				cwrite(latest, value);
		}
point:
		timedc_point(&points[0], 200000, TIMEDC_SAME);
		TIMEDC_SYNC();
	}
}

static void reader(void)
{
	TIMEDC_FRAME;
	int last[WRITERS] = {-1, -1, -1}, newest = -1;
	struct value value;
	TIMEDC_KEEP(last);
	TIMEDC_KEEP(newest);
	TIMEDC_KEEP(value);
	while (finished < WRITERS * VALUES) {
		TIMEDC_SYNC();
		TIMEDC_GUARD(&points[1], 300000, point);
		for (;;) {
			{
				TIMEDC_CRITICAL;
				if (nelem(queue) == 0 && finished >= WRITERS * VALUES)
					break;
			}
			cread(latest, value);
			check(&value);
			backward += value.number[0] < newest;
			newest = value.number[0];
			TIMEDC_SYNC();
			{
				TIMEDC_CRITICAL;
				if (nelem(queue) == 0)
					continue;
				cread(queue, value);
				check(&value);
				if (value.writer == LAST)
					break;
				disorder += value.number[0] <= last[value.writer];
				last[value.writer] = value.number[0];
				__atomic_add_fetch(&counts[value.writer], 1, __ATOMIC_RELAXED);
				if (__atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST) ==
				    WRITERS * VALUES) {
					/* The other reader may be waiting: one value for each. */
					value.writer = LAST;
					for (int i = 0; i < READERS; i++)
						cwrite(queue, value);
				}
				TIMEDC_SYNC();
			}
		}
point:
		timedc_point(&points[1], 300000, TIMEDC_SAME);
		TIMEDC_SYNC();
	}
}

TASK(writer, 200000, 200000);
TASK(reader, 300000, 300000);
static const struct timedc_point points[] = {POINT(0, FIRM, -6), POINT(1, FIRM, -6)};
UNIT(&writer_task, &reader_task)

static void run(void)
{
	TIMEDC_MAIN(&main_task);
	alarm(50);
	for (int i = 0; i < WRITERS; i++)
		timedc_start(&writer_task, NULL);
	for (int i = 0; i < READERS; i++)
		timedc_start(&reader_task, NULL);
}

int main(void)
{
	run();
	fprintf(stderr, "%d %d %d read, %d torn, %d in disorder, %d backward\n", counts[0],
		counts[1], counts[2], torn, disorder, backward);
	return 0;
}
