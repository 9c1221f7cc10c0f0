/*
 * skipdelay ends a firm segment before its deadline: what stands between is not executed.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 4ms worker arrive @p, skip @p
 * trace: 14ms worker abort @q, release @q, end
 */
#include <cilktc.h>

__attribute__((exectime(4, ms))) static void quick(void) { }
__attribute__((exectime(40, ms))) static void slow(void) { }

task worker()
{
	int done = 1;

	quick();
	if (done)
		skipdelay;
	puts("not executed");
	slow();
	fdelay(10, ms); /* @p */
	slow();
	fdelay(10, ms); /* @q */
}

int main(void)
{
	worker();
}
