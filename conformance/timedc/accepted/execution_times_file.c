/*
 * A file may state the execution times of whole segments; they pass at the arrival.
 * duration: 1s
 * times: worker:start,1000000,4000000,0,0,worker:@p
 * times: worker:@p,1000000,15000000,0,0,worker:@p
 * times: worker:@p,1000000,7000000,0,0,worker:end
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 4ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @p, release @p
 * trace: 27ms worker end
 * output: 1
 * output: 2
 */
#include <cilktc.h>

task worker()
{
	for (int i = 1; i <= 2; i++) {
		printf("%d\n", i);
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
