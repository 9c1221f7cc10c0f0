/*
 * With --keep-phase the origin is the release even when it is past, and later points catch up.
 * duration: 1s
 * cc: --keep-phase
 * trace: 0 main start
 * trace: 25ms main arrive @p 15ms, release @p 15ms, arrive @p 5ms, release @p 5ms, arrive @p
 * trace: 30ms main release @p, arrive @p
 * trace: 40ms main release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(25, ms))) static void slow(void)
{
}

int main(void)
{
	for (int i = 0; i < 4; i++) {
		if (i == 0)
			slow();
		sdelay(10, ms); /* @p */
	}
	return 0;
}
