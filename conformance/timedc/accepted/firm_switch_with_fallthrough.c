/*
 * A segment may fall through the branches of a switch; the point after it guards them all.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 9ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 16ms worker arrive @p
 * trace: 20ms worker release @p
 * trace: 23ms worker arrive @p
 * trace: 30ms worker release @p
 * trace: 40ms worker abort @p, release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static void step(void) { }
__attribute__((exectime(30, ms))) static void slow(void) { }

task worker()
{
	for (int i = 0; i < 4; i++) {
		switch (i) {
		case 0:
			step();
			/* fallthrough */
		case 1:
			step();
			/* fallthrough */
		case 2:
			step();
			break;
		case 3:
			slow();
		}
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
