/*
 * A loop that reads for ever is left at the deadline.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, write empty, arrive @p
 * trace: 10ms worker release @p, read empty
 * trace: 10ms worker arrive @q
 * trace: 20ms worker release @q
 * trace: 30ms worker abort @r, release @r, end
 * output: 5
 */
#include <cilktc.h>

int fifochannel(empty);

task worker()
{
	int got = 0, never = 0;

	cwrite(empty, 5);
	fdelay(10, ms); /* @p */
	cread(empty, got);
	fdelay(10, ms); /* @q */
	while (never < 5)
		cread(empty, never);
	fdelay(10, ms); /* @r */
	printf("%d\n", got);
}

int main(void)
{
	worker();
}
