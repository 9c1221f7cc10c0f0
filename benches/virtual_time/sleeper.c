/* Makes so many calls that wait, each until a little later. The first of its system says how long
 * one took, in nanoseconds of the machine's clock. Usage: sleeper CALLS NUMBER */
#define _POSIX_C_SOURCE 200809L
#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEP_NS 1000

static int64_t machine_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int64_t calls = argc == 3 ? atoll(argv[1]) : 0, began;
	onbeat *run;

	if (calls < 1 || onbeat_open(&run) || onbeat_start(run))
		return EXIT_FAILURE;
	began = machine_ns();
	for (int64_t call = 1; call <= calls; call++)
		if (onbeat_sleep_until(run, call * STEP_NS, NULL))
			return EXIT_FAILURE;
	if (atoi(argv[2]) == 0)
		fprintf(stderr, "sleeper: %lld\n", (long long)((machine_ns() - began) / calls));
	onbeat_close(run);
	return EXIT_SUCCESS;
}
