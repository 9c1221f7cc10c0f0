/*
 * Nested loops with continue and break may surround a firm point.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 2ms worker arrive @p
 * trace: 5ms worker release @p
 * trace: 9ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 15ms worker abort @p, release @p, end
 * output: 2
 */
#include <cilktc.h>

__attribute__((exectime(2, ms))) static void work(void) { }

task worker()
{
	int rounds;

	for (rounds = 0;; rounds++) {
		int i = 0;

		while (1) {
			if (i > rounds)
				break;
			for (int k = 0; k < 5; k++) {
				if (k != 2)
					continue;
				work();
			}
			i++;
		}
		fdelay(5, ms); /* @p */
		if (rounds == 2)
			break;
	}
	printf("%d\n", rounds);
}

int main(void)
{
	worker();
}
