/*
 * A critical block that outlasts the release: no wait, and the origin is the instant it ended.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 5ms, release @p 5ms
 * trace: 30ms worker abort @p 5ms, release @p 5ms, end
 */
#include <cilktc.h>

task worker()
{
	for (int i = 0; i < 2; i++) {
		critical {
			__attribute__((exectime(15, ms)));
		}
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
