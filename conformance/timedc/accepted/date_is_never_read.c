/*
 * Time is never that of CLOCK_REALTIME, which steps with the date: a program whose clock_gettime
 * refuses that clock runs.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms..40ms/10ms worker release @p, arrive @p
 * trace: 50ms worker release @p, end
 * output: in time
 */
#define _GNU_SOURCE
#include <cilktc.h>
#include <sys/syscall.h>

int clock_gettime(clockid_t clock, struct timespec *at)
{
	if (clock == CLOCK_REALTIME)
		_exit(99);
	return (int)syscall(SYS_clock_gettime, clock, at);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
	if (clock == CLOCK_REALTIME)
		_exit(99);
	return (int)syscall(SYS_clock_nanosleep, clock, flags, until, left);
}

task worker()
{
	for (int i = 0; i < 5; i++)
		fdelay(10, ms); /* @p */
	puts("in time");
}

int main(void)
{
	worker();
}
