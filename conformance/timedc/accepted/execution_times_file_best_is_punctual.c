/*
 * In the best case nothing begins late, and an abort takes no time.
 *
 * duration: 25ms
 * execution: best
 * times: worker:@p,12000000,12000000,300000,700000,worker:@p
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @p, release @p
 */
#include <cilktc.h>

task worker()
{
	while (1) {
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
