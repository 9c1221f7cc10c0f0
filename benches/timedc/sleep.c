/* Wakes up each millisecond, ROUNDS times. The run time's measurement has each release's error. */
#include <cilktc.h>

task sleeper()
{
#if PRIORITY > 0
	spriority(PRIORITY);
#endif
	for (int i = 0; i < ROUNDS; i++)
		sdelay(1, ms);
}

int main(void)
{
	sleeper();
}
