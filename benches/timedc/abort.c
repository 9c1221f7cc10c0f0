/*
 * Computes without end, and is aborted after a millisecond of two, ROUNDS times. Who computes all
 * the time at a real-time priority is held up by the kernel.
 */
#include <cilktc.h>

static volatile unsigned long count;

static void compute(void)
{
	for (;;)
		count++;
}

task worker()
{
#if PRIORITY > 0
	spriority(PRIORITY);
#endif
	for (int i = 0; i < ROUNDS; i++) {
		compute();
		ftp(2, 1, ms);
	}
}

int main(void)
{
	worker();
}
