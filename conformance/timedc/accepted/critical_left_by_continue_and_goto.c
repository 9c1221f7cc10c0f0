/*
 * continue and goto may leave a critical block too.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 12ms worker abort @p 2ms, release @p 2ms
 * trace: 24ms worker abort @p 2ms, release @p 2ms, end
 * output: 1
 * output: 2
 */
#include <cilktc.h>

__attribute__((exectime(12, ms))) static void work(void) { }

task worker()
{
	for (int i = 1; i <= 2; i++) {
		int again = 1;

		do {
			critical {
				work();
				if (i == 1)
					continue;
				goto out;
			}
		} while (again-- > 1);
out:
		fdelay(10, ms); /* @p */
		printf("%d\n", i);
	}
}

int main(void)
{
	worker();
}
