/*
 * Where the deadline's variable is declared later in the segment, the deadline is watched from
 * there, still counted from the origin.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 20ms worker abort @p, release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(8, ms))) static int choose(void)
{
	return 20;
}

__attribute__((exectime(100, ms))) static void slow(void) { }

task worker()
{
	int deadline = choose();

	slow();
	fdelay(deadline, ms); /* @p */
}

int main(void)
{
	worker();
}
