/*
 * An abort leaves a channel end that control has come to: a waiting read takes nothing, and a
 * critical one is done first.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, reach @wait
 * trace: 10ms worker abort @p, release @p
 * trace: 10ms worker reach @critical
 * trace: 25ms worker read late, abort @q 5ms, release @q 5ms, end
 * trace: 0 helper start, arrive @r
 * trace: 25ms helper release @r, reach @write, write late, end
 * output: 6
 */
#include <cilktc.h>

int fifochannel(empty);
int fifochannel late;

task worker()
{
	int got = 0;

	cread(empty, got); /* @wait */
	fdelay(10, ms); /* @p */
	critical {
		cread(late, got); /* @critical */
	}
	fdelay(10, ms); /* @q */
	printf("%d\n", got);
}

task helper()
{
	sdelay(25, ms); /* @r */
	cwrite(late, 6); /* @write */
}

int main(void)
{
	worker();
	helper();
}
