/*
 * The times of a segment belong to the pair of its points, also of two in one line.
 * duration: 1s
 * execution: best
 * times: main:start,3000000,30000000,0,0,main:@a
 * times: main:@a,12000000,120000000,0,0,main:@a.2
 * trace: 0 main start
 * trace: 3ms main arrive @a
 * trace: 10ms main release @a
 * trace: 22ms main arrive @a.2 2ms, release @a.2 2ms, end
 */
#include <cilktc.h>

int main(void)
{
	sdelay(10, ms); sdelay(10, ms); /* @a */
	return 0;
}
