/*
 * Control falls through the branches of a switch with points in them.
 * duration: 1s
 * trace: 0 main start, arrive @c
 * trace: 4ms main release @c, arrive @b
 * trace: 6ms main release @b, arrive @c
 * trace: 10ms main release @c, arrive @a
 * trace: 11ms main release @a, arrive @b
 * trace: 13ms main release @b, arrive @c
 * trace: 17ms main release @c, arrive @d
 * trace: 25ms main release @d, end
 */
#include <cilktc.h>

static void go(int how)
{
	switch (how) {
	case 3: sdelay(1, ms); /* @a */
		/* fallthrough */
	case 2:
		sdelay(2, ms); /* @b */
		/* fallthrough */
	case 1: {
		sdelay(4, ms); /* @c */
		break;
	}
	case 7 ... 9:
	default:
		sdelay(8, ms); /* @d */
	}
}

int main(void)
{
	go(1);
	go(2);
	go(3);
	go(8);
	return 0;
}
