/*
 * continue goes to the point in the step of its loop.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @p, release @p, arrive @p
 * trace: 30ms worker release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(50, ms))) static void slow(void) { }

task worker()
{
	int n = 0;

	for (;; fdelay(10, ms)) { /* @p */
		if (n == 3)
			break;
		if (n++ != 1)
			continue;
		slow();
	}
}

int main(void)
{
	worker();
}
