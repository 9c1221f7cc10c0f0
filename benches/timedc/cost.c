/*
 * ROUNDS timing points, POINT (sdelay or fdelay), PERIOD_US from each other; prints the processor
 * time and the elapsed time of all, in nanoseconds.
 */
#include <cilktc.h>
#include <stdio.h>
#include <time.h>

static long long ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

task loop()
{
#if PRIORITY > 0
	spriority(PRIORITY);
#endif
	long long cpu, wall;

	POINT(1, ms); /* what is done once is done */
	cpu = ns(CLOCK_PROCESS_CPUTIME_ID);
	wall = ns(CLOCK_MONOTONIC);
	for (int i = 0; i < ROUNDS; i++)
		POINT(PERIOD_US, us);
	printf("%lld %lld\n", ns(CLOCK_PROCESS_CPUTIME_ID) - cpu, ns(CLOCK_MONOTONIC) - wall);
}

int main(void)
{
	loop();
}
