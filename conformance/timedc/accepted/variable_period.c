/*
 * A period may be a variable or an expression, which is evaluated at the point.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 1ms main release @p, arrive @p
 * trace: 3ms main release @p, arrive @p
 * trace: 7ms main release @p, arrive @q
 * trace: 23ms main release @q, arrive @r
 * trace: 42ms main release @r, end
 */
#include <cilktc.h>

static long twice(long n)
{
	return 2 * n;
}

int main(void)
{
	int period;

	for (period = 1; period < 8; period *= 2)
		sdelay(period, ms); /* @p */
	sdelay(twice(period), ms); /* @q */
	sdelay(period < 10 ? period * 2 + 3 : twice(50), ms); /* @r */
	return 0;
}
