/*
 * Branches may stand before a firm point; each way is guarded.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 3ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @p, release @p
 * trace: 23ms worker arrive @p
 * trace: 30ms worker release @p
 * trace: 40ms worker abort @p, release @p, end
 * output: odd begins
 * output: odd begins
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static void quick(void) { }
__attribute__((exectime(30, ms))) static void slow(void) { }

task worker()
{
	for (int i = 0; i < 4; i++) {
		if (i % 2) {
			puts("odd begins");
			slow();
			puts("odd ends");
		} else {
			quick();
		}
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
