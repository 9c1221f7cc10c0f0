/*
 * A task whose name begins like the header of a file of execution times has execution times.
 * duration: 1s
 * times: src, bcet, wcet, jitter, abort, dst
 * times: src_read:start,1000000,4000000,0,0,src_read:@p
 * trace: 0 main start, end
 * trace: 0 src_read start
 * trace: 4ms src_read arrive @p
 * trace: 10ms src_read release @p, end
 */
#include <cilktc.h>

task src_read()
{
	sdelay(10, ms); /* @p */
}

int main(void)
{
	src_read();
}
