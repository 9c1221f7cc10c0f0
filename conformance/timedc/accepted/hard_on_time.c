/*
 * A hard point that is reached in time is like a soft one.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 5ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 15ms worker arrive @p
 * trace: 20ms worker release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void) { }

task worker()
{
	for (int i = 0; i < 2; i++) {
		work();
		hdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
