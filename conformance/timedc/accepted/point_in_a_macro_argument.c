/*
 * A macro of the user's may wrap a firm point in a statement of its own.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 5ms, release @p 5ms
 * trace: 18ms worker arrive @q
 * trace: 25ms worker release @q, end
 * output: late
 */
#include <cilktc.h>

#define IF_LATE(point, action) if ((point) > 0) { action; }

__attribute__((exectime(15, ms))) static void slow(void) { }
__attribute__((exectime(3, ms))) static void quick(void) { }

task worker()
{
	critical { slow(); }
	IF_LATE(fdelay(10, ms), puts("late")) /* @p */
	quick();
	IF_LATE(fdelay(10, ms), puts("never")) /* @q */
}

int main(void)
{
	worker();
}
