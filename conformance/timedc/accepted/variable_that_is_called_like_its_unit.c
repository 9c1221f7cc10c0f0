/*
 * As a timing point's unit, ms is the unit even where a variable has that name.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 4ms main release @p, arrive @q
 * trace: 4004us main release @q, end
 */
#include <cilktc.h>

int main(void)
{
	int ms = 4, us = ms;

	sdelay(ms, ms); /* @p */
	sdelay(us, us); /* @q */
	return 0;
}
