/*
 * signals.c: the program's own signals. It blocks all but one, whose handler still runs when the
 * deadline comes: the abort waits for its end. Then that signal is not blocked.
 */
#include <cilktc.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define ROUNDS 20
#define NEVER 1000000000000

static volatile sig_atomic_t begun, ended;
static volatile unsigned sum;

static void on_signal(int number)
{
	struct timespec at;
	long end_ms = 0;

	(void)number;
	begun++;
	clock_gettime(CLOCK_MONOTONIC, &at);
	end_ms = at.tv_sec * 1000 + at.tv_nsec / 1000000 + 5;
	while (at.tv_sec * 1000 + at.tv_nsec / 1000000 <= end_ms)
		clock_gettime(CLOCK_MONOTONIC, &at);
	ended++;
}

static void forever(void)
{
	raise(SIGUSR1);
	while (sum || !sum)
		sum++;
}

static int is_blocked(void)
{
	sigset_t set;

	pthread_sigmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, SIGUSR1);
}

task interrupted()
{
	int aborted = 0, blocked = 0;

	for (int round = 0; round < ROUNDS; round++) {
		long delay = 5;

		forever();
		fdelay(delay, ms);
		delay = NEVER; /* the counting must not be late */
		aborted += timedc_aborted();
		blocked += is_blocked();
	}
	fprintf(stderr, "%d aborted, %d handlers cut off, %d blocked\n", aborted,
		(int)(begun - ended), blocked);
}

int main(void)
{
	sigset_t set;

	signal(SIGUSR1, on_signal);
	sigfillset(&set);
	sigdelset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	interrupted();
	return 0;
}
