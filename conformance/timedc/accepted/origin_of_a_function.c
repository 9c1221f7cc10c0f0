/*
 * With --origin function the points of a called function count from its call, and behind it the
 * caller's from what they counted from before.
 *
 * cc: --origin function
 * duration: 100ms
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 0 worker arrive @o
 * trace: 1ms worker release @o
 * trace: 4ms worker arrive @p
 * trace: 14ms worker release @p, arrive @q
 * trace: 19ms worker release @q, arrive @r
 * trace: 31ms worker release @r, end
 */
#include <cilktc.h>

static void step(void)
{
	fdelay(10, ms); /* @p */
	sdelay(5, ms); /* @q */
}

task worker()
{
	sdelay(1, ms); /* @o */
	__attribute__((exectime(3, ms)));
	step();
	sdelay(30, ms); /* @r */
}

int main(void)
{
	worker();
}
