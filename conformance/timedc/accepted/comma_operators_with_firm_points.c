/*
 * A firm point may be an operand of a comma operator that is a statement of its own.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @a, release @a
 * trace: 20ms worker abort @b, release @b, arrive @b.2
 * trace: 25ms worker release @b.2, end
 * output: 1 1
 */
#include <cilktc.h>

__attribute__((exectime(30, ms))) static void slow(void) { }

task worker()
{
	int before = 0, after = 0;

	slow(), before++, fdelay(10, ms), after++; /* @a */
	before++, slow(), fdelay(10, ms), fdelay(5, ms); /* @b */
	printf("%d %d\n", before, after);
}

int main(void)
{
	worker();
}
