/*
 * A firm point with the deadline infty is never aborted and never late.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 30ms worker arrive @p, release @p
 * trace: 33ms worker arrive @q
 * trace: 40ms worker release @q, end
 * output: 0
 */
#include <cilktc.h>

__attribute__((exectime(30, ms))) static void slow(void) { }
__attribute__((exectime(3, ms))) static void quick(void) { }

task worker()
{
	long late;

	slow();
	late = ftp(20, infty, ms); /* @p */
	printf("%ld\n", late);
	quick();
	stp(10, infty, ms); /* @q */
}

int main(void)
{
	worker();
}
