/*
 * Lines may end as on other systems.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @p, release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(20, ms))) static void work(void) { }

#define WAIT \
	fdelay(10, ms)

task worker()
{
	work();
	WAIT; /* @p */
}

int main(void) { worker(); }
