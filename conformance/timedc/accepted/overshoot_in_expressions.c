/*
 * A soft point is an expression: in initialisers, assignments, conditions, operands, arguments.
 * duration: 1s
 * trace: 0 main start
 * trace: 12ms main arrive @a 2ms, release @a 2ms
 * trace: 24ms main arrive @b 2ms, release @b 2ms
 * trace: 36ms main arrive @c 2ms, release @c 2ms
 * trace: 48ms main arrive @d 2ms, release @d 2ms, arrive @e
 * trace: 58ms main release @e, arrive @f, release @f, end
 * output: 2 4 late 20 0
 */
#include <cilktc.h>

__attribute__((exectime(12, ms))) static void work(void) { }

static long tenfold(long n)
{
	return 10 * n;
}

int main(void)
{
	work();
	long initial = sdelay(10, ms); /* @a */
	long sum = initial;

	work();
	sum += sdelay(10, ms); /* @b */
	printf("%ld %ld ", initial, sum);
	work();
	if (sdelay(10, ms) > 1) /* @c */
		printf("late ");
	work();
	printf("%ld ", tenfold(sdelay(10, ms))); /* @d */
	printf("%ld\n", 5 * sdelay(10, ms) + 0 * sum); /* @e */
	return (int)sdelay(0, ms); /* @f */
}
