/*
 * A firm point that may be the next one guards, also where no point may come instead.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 8ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 18ms worker end
 * output: 2
 */
#include <cilktc.h>

__attribute__((exectime(8, ms))) static void work(void) { }

task worker()
{
	int n = 0;

	while (n < 2) {
		work();
		if (n++ == 0)
			fdelay(10, ms); /* @p */
	}
	printf("%d\n", n);
}

int main(void)
{
	worker();
}
