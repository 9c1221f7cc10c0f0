/* What cost.c does, by hand: a loop around clock_nanosleep, in a thread as well. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

static long long ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_until(long long at)
{
	struct timespec until = {at / 1000000000, at % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		;
}

static void *loop(void *nothing)
{
	long long next = ns(CLOCK_MONOTONIC), cpu, wall;

#if PRIORITY > 0
	pthread_setschedparam(pthread_self(), SCHED_FIFO,
			      &(struct sched_param){.sched_priority = PRIORITY});
#endif
	sleep_until(next += 1000000);
	cpu = ns(CLOCK_PROCESS_CPUTIME_ID);
	wall = ns(CLOCK_MONOTONIC);
	for (int i = 0; i < ROUNDS; i++)
		sleep_until(next += PERIOD_US * 1000LL);
	printf("%lld %lld\n", ns(CLOCK_PROCESS_CPUTIME_ID) - cpu, ns(CLOCK_MONOTONIC) - wall);
	return nothing;
}

int main(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, loop, NULL) || pthread_join(thread, NULL);
}
