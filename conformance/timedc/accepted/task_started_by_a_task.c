/*
 * A task may start another; the call continues at once and the origin is its instant.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 first start, arrive @a
 * trace: 10ms first release @a, arrive @b
 * trace: 15ms first release @b, end
 * trace: 10ms second start, arrive @c
 * trace: 30ms second release @c, end
 */
#include <cilktc.h>

task second(void)
{
	sdelay(20, ms); /* @c */
}

task first(void)
{
	sdelay(10, ms); /* @a */
	second();
	sdelay(5, ms); /* @b */
}

int main(void)
{
	first();
}
