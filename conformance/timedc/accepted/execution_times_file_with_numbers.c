/*
 * In a file of execution times, 0 is a task's start and n the n-th timing point of the text.
 * duration: 1s
 * times: SRC,BCET,WCET,JITTER,ABORT,DST
 * times: 0,1000000,4000000,0,0,1
 * times: 1,1000000,2999999.2,,,2
 * times: 2,1000000,6000000,0,0,1
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 4ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 13ms worker arrive @q
 * trace: 30ms worker release @q
 * trace: 36ms worker arrive @p
 * trace: 40ms worker release @p
 * trace: 43ms worker arrive @q
 * trace: 60ms worker release @q, end
 */
#include <cilktc.h>

task worker()
{
	for (int i = 1; i <= 2; i++) {
		sdelay(10, ms); /* @p */
		sdelay(20, ms); /* @q */
	}
}

int main(void)
{
	worker();
}
