/*
 * A period of 0 does not wait; what is negative at run time is 0.
 * duration: 1s
 * trace: 0 main start, arrive @a, release @a, arrive @b, release @b, arrive @c
 * trace: 5ms main release @c, end
 */
#include <cilktc.h>

int main(int argc, char **argv)
{
	int span = argc - 10;

	(void)argv;
	sdelay(0, ms); /* @a */
	sdelay(span, ms); /* @b */
	sdelay(span + 14, ms); /* @c */
	return 0;
}
