/*
 * A function may have firm points: its code up to them is guarded, from the task's origin.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 5ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @p, release @p
 * trace: 25ms worker arrive @p
 * trace: 30ms worker release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void) { }

static void cycle(int rounds)
{
	while (rounds-- > 0)
		work();
	fdelay(10, ms); /* @p */
}

task worker()
{
	cycle(1);
	cycle(9);
	cycle(1);
}

int main(void)
{
	worker();
}
