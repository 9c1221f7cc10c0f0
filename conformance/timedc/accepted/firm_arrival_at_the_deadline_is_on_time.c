/*
 * Who arrives at the very instant of the deadline is not late and is not aborted.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker arrive @p, release @p
 * trace: 20ms worker arrive @p, release @p, end
 * output: done
 * output: done
 */
#include <cilktc.h>

__attribute__((exectime(10, ms))) static void work(void)
{
}

task worker()
{
	for (int i = 0; i < 2; i++) {
		work();
		puts("done");
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
