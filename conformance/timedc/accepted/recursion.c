/*
 * A recursive function may have soft points.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 3ms main release @p, arrive @p
 * trace: 5ms main release @p, arrive @p
 * trace: 6ms main release @p, end
 */
#include <cilktc.h>

static void down(int n)
{
	if (n == 0)
		return;
	sdelay(n, ms); /* @p */
	down(n - 1);
}

int main(void)
{
	down(3);
	return 0;
}
