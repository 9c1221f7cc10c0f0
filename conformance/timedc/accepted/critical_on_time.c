/*
 * A critical block that ends before the deadline changes nothing.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 6ms worker arrive @p
 * trace: 10ms worker release @p, end
 */
#include <cilktc.h>

task worker()
{
	critical
	{
		__attribute__((exectime(6, ms)));
	}
	fdelay(10, ms); /* @p */
}

int main(void)
{
	worker();
}
