/*
 * Where two firm points of the same deadline may be next, an abort goes to the first in the text.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @a, release @a
 * trace: 15ms worker arrive @b
 * trace: 20ms worker release @b, end
 */
#include <cilktc.h>

static int rounds;

__attribute__((exectime(50, ms))) static void slow(void) { }
__attribute__((exectime(5, ms))) static void quick(void) { }

task worker()
{
	while (rounds < 2) {
		if (rounds == 0)
			slow();
		else
			quick();
		if (rounds++ == 0)
			fdelay(10, ms); /* @a */
		else
			fdelay(10, ms); /* @b */
		rounds = 1 + rounds / 2;
	}
}

int main(void)
{
	worker();
}
