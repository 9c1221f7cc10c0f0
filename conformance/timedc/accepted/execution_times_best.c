/*
 * With ONBEAT_EXECUTION=best the best cases pass instead of the worst.
 * duration: 1s
 * execution: best
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 2ms worker arrive @p
 * trace: 10ms worker release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(2, 50, ms))) static void work(void) { }

task worker()
{
	work();
	fdelay(10, ms); /* @p */
}

int main(void)
{
	worker();
}
