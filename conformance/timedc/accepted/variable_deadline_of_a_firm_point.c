/*
 * A deadline that is not constant is evaluated when the segment begins.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @p, release @p
 * trace: 30ms worker abort @p, release @p
 * trace: 60ms worker abort @p, release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(100, ms))) static void work(void) { }

task worker()
{
	for (int i = 1; i <= 3; i++) {
		work();
		fdelay(10 * i, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
