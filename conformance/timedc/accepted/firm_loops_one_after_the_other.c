/*
 * Two loops with firm points of their own may follow each other.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 phases start, arrive @a
 * trace: 10ms phases release @a, arrive @a
 * trace: 20ms phases release @a, arrive @s
 * trace: 30ms phases release @s
 * trace: 35ms phases abort @b, release @b
 * trace: 40ms phases abort @b, release @b, end
 */
#include <cilktc.h>

__attribute__((exectime(6, ms))) static void work(void) { }

task phases()
{
	int n = 0;

	while (n++ < 2)
		fdelay(10, ms); /* @a */
	sdelay(10, ms); /* @s */
	for (n = 0; n < 2; n++) {
		work();
		fdelay(5, ms); /* @b */
	}
}

int main(void)
{
	phases();
}
