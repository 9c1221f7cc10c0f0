/*
 * Several points in one line are told apart by a number, also when one macro makes them.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 1ms main release @p, arrive @p.2
 * trace: 3ms main release @p.2, arrive @p.3
 * trace: 6ms main release @p.3, end
 */
#include <cilktc.h>

#define STEPS sdelay(1, ms); sdelay(2, ms)

int main(void)
{
	STEPS; sdelay(3, ms); /* @p */
	return 0;
}
