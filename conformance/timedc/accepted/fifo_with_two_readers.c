/*
 * Each value of a fifochannel is read once, by whichever reader comes.
 * duration: 1s
 * trace: 0 main start, arrive @m
 * trace: 10ms main release @m, end
 * trace: 0 early start, arrive @e
 * trace: 1ms early release @e, read jobs, arrive @f
 * trace: 4ms early release @f, read jobs, end
 * trace: 0 late start, arrive @l
 * trace: 2ms late release @l, read jobs, end
 * trace: 0 writer start, write jobs, write jobs, write jobs, end
 * output: 1 2 3
 */
#include <cilktc.h>

int fifochannel(jobs);
static int got[3];

task writer()
{
	cwrite(jobs, 1);
	cwrite(jobs, 2);
	cwrite(jobs, 3);
}

task early()
{
	sdelay(1, ms); /* @e */
	cread(jobs, got[0]);
	sdelay(3, ms); /* @f */
	cread(jobs, got[2]);
}

task late()
{
	sdelay(2, ms); /* @l */
	cread(jobs, got[1]);
}

int main(void)
{
	writer();
	early();
	late();
	sdelay(10, ms); /* @m */
	printf("%d %d %d\n", got[0], got[1], got[2]);
}
