/*
 * A segment begins late by its JITTER, and its abort takes the time of ABORT.
 *
 * duration: 60ms
 * times: worker:start,1000000,2000000,500000,0,worker:@p
 * times: worker:@p,1000000,12000000,300000,700000,worker:@p
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 2500us worker arrive @p
 * trace: 10300us worker release @p
 * trace: 20700us worker abort @p 700us, release @p 700us
 * trace: 31400us worker abort @p 700us, release @p 700us
 * trace: 42100us worker abort @p 700us, release @p 700us
 * trace: 52800us worker abort @p 700us, release @p 700us
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
