/*
 * gettime returns the time since the program's start, and the next point counts from there.
 * duration: 1s
 * trace: 0 main start
 * trace: 7ms main arrive @p
 * trace: 17ms main release @p, arrive @q
 * trace: 27ms main release @q, end
 * output: 7 17000 27000000 0
 */
#include <cilktc.h>

__attribute__((exectime(7, ms))) static void work(void) { }

int main(void)
{
	long a, b, c, d;

	work();
	a = gettime(ms);
	sdelay(10, ms); /* @p */
	b = gettime(us);
	sdelay(10, ms); /* @q */
	c = gettime(ns);
	d = gettime(sec);
	printf("%ld %ld %ld %ld\n", a, b, c, d);
	return 0;
}
