/*
 * A firm point may be the whole step of a for loop: the body is its segment.
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

__attribute__((exectime(5, ms))) static void quick(void) { }
__attribute__((exectime(50, ms))) static void slow(void) { }

task worker()
{
	int n = 0;

	for (; n < 3; fdelay(10, ms)) { /* @p */
		n++;
		if (n == 2)
			slow();
		quick();
	}
}

int main(void)
{
	worker();
}
