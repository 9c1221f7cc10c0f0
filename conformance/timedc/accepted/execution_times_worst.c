/*
 * The worst case passes unless the best is asked for; of a function at each call, of a place each
 * time that control comes there.
 * duration: 5s
 * trace: 0 main start
 * trace: 1512ms main arrive @p 1502ms, release @p 1502ms, end
 */
#include <cilktc.h>

__attribute__((exectime(1, 4, ms))) static int work(int n)
{
	__attribute__((exectime(500, 1000, us)));
	return n;
}

static __attribute__((noinline)) __attribute__((exectime(1, sec))) void second(void)
{
}

static void half(void)
{
	for (int i = 0; i < 2; i++)
		__attribute__((exectime(250, ms)));
}

int main(void)
{
	work(work(1));
	half();
	second();
	__attribute__((exectime(2000000, ns)));
	sdelay(10, ms); /* @p */
	return 0;
}
