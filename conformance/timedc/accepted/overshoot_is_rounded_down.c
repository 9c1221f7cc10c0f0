/*
 * The overshoot is in whole units of the point, rounded down; the trace has it in full.
 * duration: 1s
 * trace: 0 main start
 * trace: 13700us main arrive @a 3700us, release @a 3700us
 * trace: 27400us main arrive @b 3700us, release @b 3700us
 * trace: 41100us main arrive @c 3700us, release @c 3700us
 * trace: 54800us main arrive @d 13700us, release @d 13700us, end
 * output: 3 3700 3700000 0
 */
#include <cilktc.h>

__attribute__((exectime(13700, us))) static void work(void)
{
}

int main(void)
{
	long in_ms, in_us, in_ns, in_s;

	work();
	in_ms = sdelay(10, ms); /* @a */
	work();
	in_us = sdelay(10000, us); /* @b */
	work();
	in_ns = sdelay(10000000, ns); /* @c */
	work();
	in_s = sdelay(0, sec); /* @d */
	printf("%ld %ld %ld %ld\n", in_ms, in_us, in_ns, in_s);
	return 0;
}
