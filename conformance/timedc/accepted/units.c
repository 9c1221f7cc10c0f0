/*
 * sec, ms, us, ns and their numbers 0, -3, -6, -9 are units.
 * duration: 10s
 * trace: 0 main start, arrive @a
 * trace: 1s main release @a, arrive @b
 * trace: 1002ms main release @b, arrive @c
 * trace: 1002003us main release @c, arrive @d
 * trace: 1002003004ns main release @d, arrive @e
 * trace: 2002003004ns main release @e, arrive @f
 * trace: 2004003004ns main release @f, arrive @g
 * trace: 2004006004ns main release @g, arrive @h
 * trace: 2004006008ns main release @h, end
 */
#include <cilktc.h>

int main(void)
{
	sdelay(1, sec); /* @a */
	sdelay(2, ms); /* @b */
	sdelay(3, us); /* @c */
	sdelay(4, ns); /* @d */
	sdelay(1, 0); /* @e */
	sdelay(2, -3); /* @f */
	sdelay(3, -6); /* @g */
	sdelay(4, -9); /* @h */
	return 0;
}
