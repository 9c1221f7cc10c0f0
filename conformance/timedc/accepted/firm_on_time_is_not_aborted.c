/*
 * A firm segment that is done before its deadline is like a soft one.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 5ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 15ms worker arrive @p
 * trace: 20ms worker release @p, end
 * output: 0 0
 * output: 0 0
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void)
{
}

task worker()
{
	for (int i = 0; i < 2; i++) {
		long late;

		work();
		late = fdelay(10, ms); /* @p */
		printf("%ld %d\n", late, timedc_aborted());
	}
}

int main(void)
{
	worker();
}
