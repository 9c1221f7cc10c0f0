/*
 * The value of a firm point may be assigned, initialise a variable, or be compared.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @a 5ms, release @a 5ms
 * trace: 30ms worker abort @b 5ms, release @b 5ms
 * trace: 45ms worker abort @c 5ms, release @c 5ms, end
 * output: 5
 * output: 5
 * output: late
 */
#include <cilktc.h>

task worker()
{
	long late;

	critical { __attribute__((exectime(15, ms))); }
	late = fdelay(10, ms); /* @a */
	printf("%ld\n", late);
	critical { __attribute__((exectime(15, ms))); }
	long again = fdelay(10, ms); /* @b */
	printf("%ld\n", again);
	critical { __attribute__((exectime(15, ms))); }
	if (fdelay(10, ms) > 0) /* @c */
		puts("late");
}

int main(void)
{
	worker();
}
