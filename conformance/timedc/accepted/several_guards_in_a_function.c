/*
 * A function with several firm points in a row guards each segment with its own deadline.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 stages start
 * trace: 3ms stages abort @a
 * trace: 10ms stages release @a
 * trace: 12ms stages arrive @b
 * trace: 20ms stages release @b
 * trace: 22ms stages arrive @c
 * trace: 30ms stages release @c
 * trace: 31ms stages abort @d
 * trace: 40ms stages release @d, end
 * output: 2
 */
#include <cilktc.h>

static int done;

__attribute__((exectime(2, ms))) static void step(void) { }

static void steps(int n)
{
	while (n-- > 0) {
		step();
	}
	done++;
}

task stages()
{
	steps(2);
	ftp(10, 3, ms); /* @a */
	steps(1);
	ftp(10, 3, ms); /* @b */
	steps(1);
	sdelay(10, ms); /* @c */
	steps(1);
	ftp(10, 1, ms); /* @d */
	printf("%d\n", done);
}

int main(void)
{
	stages();
}
