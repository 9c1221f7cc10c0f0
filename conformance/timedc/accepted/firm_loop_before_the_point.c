/*
 * A loop that ends may stand before a firm point, and is left at the deadline.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 counter start
 * trace: 12ms counter abort @p, release @p, end
 * output: 3
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void) { }

task counter()
{
	int rounds = 0;

	while (rounds < 1000) {
		rounds++;
		work();
	}
	fdelay(12, ms); /* @p */
	printf("%d\n", rounds);
}

int main(void)
{
	counter();
}
