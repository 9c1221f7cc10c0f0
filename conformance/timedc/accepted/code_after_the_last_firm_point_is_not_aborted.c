/*
 * Code from which the firm point can no more be reached runs to its end.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 5ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 15ms worker arrive @p
 * trace: 20ms worker release @p
 * trace: 70ms worker end
 * output: after
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void) { }
__attribute__((exectime(50, ms))) static void clean_up(void) { }

static int running = 2;

task worker()
{
	while (running) {
		work();
		fdelay(10, ms); /* @p */
		running--;
	}
	clean_up();
	puts("after");
}

int main(void)
{
	worker();
}
