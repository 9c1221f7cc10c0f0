/*
 * Points on two levels of loops: conditions and steps between them run without a deadline.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 3ms worker arrive @i
 * trace: 5ms worker release @i
 * trace: 8ms worker arrive @i
 * trace: 10ms worker release @i, arrive @o
 * trace: 30ms worker release @o
 * trace: 33ms worker arrive @i
 * trace: 35ms worker release @i
 * trace: 38ms worker arrive @i
 * trace: 40ms worker release @i, arrive @o
 * trace: 60ms worker release @o, end
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static void work(void) { }

task worker()
{
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 2; j++) {
			work();
			fdelay(5, ms); /* @i */
		}
		fdelay(20, ms); /* @o */
	}
}

int main(void)
{
	worker();
}
