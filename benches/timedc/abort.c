/* Computes without end, and is aborted each millisecond, ROUNDS times. */
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
		fdelay(1, ms);
	}
}

int main(void)
{
	worker();
}
