/*
 * A soft point that is reached late returns by how much, and its origin is the arrival.
 * duration: 1s
 * trace: 0 main start
 * trace: 13ms main arrive @p 3ms, release @p 3ms, arrive @q
 * trace: 23ms main release @q, end
 * output: 3
 * output: 0
 */
#include <cilktc.h>

__attribute__((exectime(13, ms))) static void work(void)
{
}

int main(void)
{
	work();
	printf("%ld\n", (long)sdelay(10, ms)); /* @p */
	printf("%ld\n", (long)sdelay(10, ms)); /* @q */
	return 0;
}
