/*
 * counts.c: two firm tasks with different deadlines and functions inside. Which segments are
 * aborted does not depend on the machine: those never end, and the others have a deadline that
 * never comes. Nor may the counting be late. Argument: how many rounds of 20 ms.
 */
#include <cilktc.h>
#include <stdio.h>
#include <stdlib.h>

#define NEVER 1000000000000

static int slow_aborted, slow_ended, fast_aborted, fast_ended, wrong;
static volatile unsigned sum;

/* Never ends, in virtual time neither: so many calls deep. */
static void forever(int depth)
{
	do {
		sum++;
		__attribute__((exectime(1, sec)));
		if (depth > 0)
			forever(depth - 1);
	} while (sum || !sum);
}

/* Every second segment never ends; the first of the task does not either. */
task slow(int rounds)
{
	timedc_keep_phase(1);
	for (int round = 0; round < rounds; round++) {
		int ended = 0;
		long deadline = round % 2 ? NEVER : 7;

		if (round % 2 == 0)
			forever(20);
		ended = 1;
		ftp(20, deadline, ms);
		deadline = NEVER;
		slow_aborted += timedc_aborted();
		slow_ended += ended;
		wrong += ended == timedc_aborted();
	}
}

/* Every third segment never ends. */
task fast(int rounds)
{
	timedc_keep_phase(1);
	for (int round = 0; round < rounds; round++) {
		int ended = 0;
		long deadline = round % 3 ? NEVER : 3;

		if (round % 3 == 0)
			forever(3);
		ended = 1;
		ftp(10, deadline, ms);
		deadline = NEVER;
		fast_aborted += timedc_aborted();
		fast_ended += ended;
		wrong += ended == timedc_aborted();
	}
}

static void report(void)
{
	fprintf(stderr, "slow %d aborted %d ended, fast %d aborted %d ended, %d wrong\n",
		slow_aborted, slow_ended, fast_aborted, fast_ended, wrong);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0;

	atexit(report);
	slow(rounds);
	fast(2 * rounds);
	return 0;
}
