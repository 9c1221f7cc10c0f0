/*
 * Of the points of a conditional operator one is reached.
 * duration: 1s
 * trace: 0 main start, arrive @p.2
 * trace: 10ms main release @p.2, arrive @p
 * trace: 30ms main release @p, arrive @p.2
 * trace: 40ms main release @p.2, end
 */
#include <cilktc.h>

int main(void)
{
	for (int i = 0; i < 3; i++)
		i % 2 ? sdelay(20, ms) : sdelay(10, ms); /* @p */
	return 0;
}
