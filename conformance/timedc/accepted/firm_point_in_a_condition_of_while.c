/*
 * A firm point may be the whole condition of a loop.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p
 * trace: 15ms worker arrive @p
 * trace: 20ms worker release @p
 * trace: 35ms worker abort @p 5ms, release @p 5ms, end
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void quick(void) { }
__attribute__((exectime(15, ms))) static void slow(void) { }

task worker()
{
	int n = 0;

	while (!fdelay(10, ms)) { /* @p */
		if (n++ == 0)
			quick();
		else
			critical { slow(); }
	}
}

int main(void)
{
	worker();
}
