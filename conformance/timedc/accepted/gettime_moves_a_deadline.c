/*
 * A deadline that is being watched moves with gettime's new origin.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 14ms worker arrive @p
 * trace: 17ms worker release @p
 * trace: 27ms worker abort @q, release @q, end
 */
#include <cilktc.h>

__attribute__((exectime(7, ms))) static void work(void) { }

task worker()
{
	work();
	gettime(ms);
	work();
	fdelay(10, ms); /* @p */
	work();
	work();
	fdelay(10, ms); /* @q */
}

int main(void)
{
	worker();
}
