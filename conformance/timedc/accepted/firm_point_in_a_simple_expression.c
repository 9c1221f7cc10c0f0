/*
 * A firm point may be an operand or an argument where nothing else in the statement has an effect.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @a 5ms, release @a 5ms
 * trace: 30ms worker abort @b 5ms, release @b 5ms
 * trace: 45ms worker abort @c 5ms, release @c 5ms, end
 * output: 7
 * output: late 5
 */
#include <cilktc.h>

task worker()
{
	long n = 2;

	critical { __attribute__((exectime(15, ms))); }
	n = n + fdelay(10, ms); /* @a */
	printf("%ld\n", n);
	critical { __attribute__((exectime(15, ms))); }
	printf("late %ld\n", (long)fdelay(10, ms)); /* @b */
	critical { __attribute__((exectime(15, ms))); }
	n += fdelay(10, ms) - 1; /* @c */
}

int main(void)
{
	worker();
}
