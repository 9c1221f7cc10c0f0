/*
 * Without phase keeping, one late arrival moves all later releases.
 * duration: 1s
 * trace: 0 main start
 * trace: 25ms main arrive @p 15ms, release @p 15ms, arrive @p
 * trace: 35ms main release @p, arrive @p
 * trace: 45ms main release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(25, ms))) static void slow(void)
{
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			slow();
		sdelay(10, ms); /* @p */
	}
	return 0;
}
