/*
 * Points among comma operators run in their order.
 * duration: 1s
 * trace: 0 main start, arrive @a
 * trace: 10ms main release @a, arrive @b
 * trace: 15ms main release @b, arrive @b.2
 * trace: 22ms main release @b.2, arrive @c
 * trace: 23ms main release @c, end
 * output: 3
 */
#include <cilktc.h>

int main(void)
{
	int n = 0;

	n++, sdelay(10, ms), n++; /* @a */
	sdelay(5, ms), sdelay(7, ms); /* @b */
	sdelay((n++, 1), ms); /* @c */
	printf("%d\n", n);
	return 0;
}
