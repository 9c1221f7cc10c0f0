/*
 * Timing points may be conditions of loops.
 * duration: 1s
 * trace: 0 main start, arrive @a
 * trace: 10ms main release @a, arrive @a
 * trace: 20ms main release @a
 * trace: 35ms main arrive @a 5ms, release @a 5ms, arrive @b
 * trace: 45ms main release @b
 * trace: 60ms main arrive @b 5ms, release @b 5ms
 * trace: 60ms main arrive @c
 * trace: 70ms main release @c
 * trace: 85ms main arrive @c 5ms, release @c 5ms, end
 */
#include <cilktc.h>

__attribute__((exectime(15, ms))) static void slow(void) { }

int main(void)
{
	int n = 0;

	while (sdelay(10, ms) == 0) /* @a */
		if (n++ == 1)
			slow();
	n = 0;
	do {
		if (n++ == 1)
			slow();
	} while (!sdelay(10, ms)); /* @b */
	for (n = 0; sdelay(10, ms) == 0; n++) /* @c */
		slow();
	return 0;
}
