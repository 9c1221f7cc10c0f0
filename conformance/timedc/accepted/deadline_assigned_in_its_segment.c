/*
 * A deadline is evaluated again when a variable in it is assigned in the segment.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 25ms worker abort @p, release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(8, ms))) static void quick(void) { }
__attribute__((exectime(100, ms))) static void slow(void) { }

task worker()
{
	int deadline = 10;

	quick();
	deadline = 25;
	slow();
	fdelay(deadline, ms); /* @p */
}

int main(void)
{
	worker();
}
