/*
 * The body of a do loop may be a firm segment, with the point at its end.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @p, release @p
 * trace: 20ms worker abort @p, release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(30, ms))) static void work(void) { }

task worker()
{
	int n = 2;

	do {
		work();
		fdelay(10, ms); /* @p */
	} while (--n);
}

int main(void)
{
	worker();
}
