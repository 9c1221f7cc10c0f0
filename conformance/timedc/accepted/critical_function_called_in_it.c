/*
 * Functions that a critical block calls are not aborted either.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 30ms worker abort @p 20ms, release @p 20ms, end
 * output: steps 3
 */
#include <cilktc.h>

static int steps;

__attribute__((exectime(10, ms))) static void step(void) { steps++; }

static void all(void)
{
	for (int i = 0; i < 3; i++)
		step();
}

task worker()
{
	critical { all(); }
	fdelay(10, ms); /* @p */
	printf("steps %d\n", steps);
}

int main(void)
{
	worker();
}
