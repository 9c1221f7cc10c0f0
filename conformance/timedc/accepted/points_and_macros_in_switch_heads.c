/*
 * A point may be what a switch, a return or an initialiser of for decides on.
 * duration: 1s
 * trace: 0 main start, arrive @a
 * trace: 4ms main release @a, arrive @b
 * trace: 9ms main release @b, arrive @c
 * trace: 15ms main release @c, arrive @d
 * trace: 22ms main release @d, end
 * output: on time 0
 */
#include <cilktc.h>

static long waited(void)
{
	return sdelay(6, ms); /* @c */
}

int main(void)
{
	switch (sdelay(4, ms)) { /* @a */
	case 0:
		printf("on time ");
		break;
	default:
		printf("late ");
	}
	for (long n = sdelay(5, ms); n < 1; n++) /* @b */
		printf("%ld\n", waited());
	return sdelay(7, ms) ? 1 : 0; /* @d */
}
