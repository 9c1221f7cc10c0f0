/*
 * A critical block needs a firm or hard point that may be next; on another way there may be none.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 5ms, release @p 5ms
 * trace: 16ms worker end
 * output: out
 */
#include <cilktc.h>

static int rounds;

task worker()
{
	while (1) {
		critical {
			__attribute__((exectime(1, ms)));
			if (rounds++ == 0)
				__attribute__((exectime(14, ms)));
		}
		if (rounds == 2)
			break;
		fdelay(10, ms); /* @p */
	}
	puts("out");
}

int main(void)
{
	worker();
}
