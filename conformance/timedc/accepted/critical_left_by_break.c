/*
 * break may leave a critical block; an abort that waited takes effect then.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 5ms, release @p 5ms, end
 * output: 3
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void) { }

task worker()
{
	int rounds = 0;

	for (;;) {
		critical {
			work();
			work();
			work();
			rounds = 3;
			break;
		}
	}
	puts("not reached");
	fdelay(10, ms); /* @p */
	printf("%d\n", rounds);
}

int main(void)
{
	worker();
}
