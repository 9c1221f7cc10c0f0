/*
 * gettime is an expression like any other.
 * duration: 1s
 * trace: 0 main start
 * trace: 21ms main arrive @p
 * trace: 31ms main release @p, end
 * output: 28 1
 */
#include <cilktc.h>

__attribute__((exectime(7, ms))) static int work(void)
{
	return 1;
}

int main(void)
{
	long sum = gettime(ms) + 0;
	int flag = work() && gettime(ms) > 6;

	work();
	while (gettime(ms) < 20) {
		sum += 2 * gettime(ms);
		work();
	}
	sdelay(10, ms); /* @p */
	printf("%ld %d\n", sum, flag);
	return 0;
}
