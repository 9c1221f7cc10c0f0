/*
 * stp counts the overshoot from its deadline and waits for its release all the same.
 * duration: 1s
 * trace: 0 main start
 * trace: 8ms main arrive @p 3ms
 * trace: 20ms main release @p 3ms
 * trace: 28ms main arrive @p 3ms
 * trace: 40ms main release @p 3ms, end
 * output: 3
 * output: 3
 */
#include <cilktc.h>

__attribute__((exectime(8, ms))) static void work(void)
{
}

int main(void)
{
	for (int i = 0; i < 2; i++) {
		long late;

		work();
		late = stp(20, 5, ms); /* @p */
		printf("%ld\n", late);
	}
	return 0;
}
