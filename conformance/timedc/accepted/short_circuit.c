/*
 * A point behind && or || is reached when C evaluates it.
 * duration: 1s
 * trace: 0 main start, arrive @b
 * trace: 20ms main release @b, arrive @c
 * trace: 40ms main release @c, end
 * output: 0 1
 */
#include <cilktc.h>

int main(int argc, char **argv)
{
	int a, b;

	(void)argv;
	a = argc > 5 && sdelay(10, ms); /* @a */
	a = argc == 1 && sdelay(20, ms); /* @b */
	b = sdelay(20, ms) || argc == 1 || sdelay(30, ms); /* @c */
	printf("%d %d\n", a, b);
	return 0;
}
