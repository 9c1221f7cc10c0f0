/*
 * So it is with firm points that are the whole head of a switch, of a return or of a do loop.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 4ms worker abort @a, release @a
 * trace: 9ms worker abort @b, release @b
 * trace: 14ms worker abort @c, release @c, end
 * output: on time
 */
#include <cilktc.h>

__attribute__((exectime(30, ms))) static void work(void) { }

static long last(void)
{
	work();
	return fdelay(5, ms); /* @c */
}

task worker()
{
	work();
	switch (fdelay(4, ms)) { /* @a */
	case 0:
		puts("on time");
	}
	do
		work();
	while (fdelay(5, ms) > 0); /* @b */
	last();
}

int main(void)
{
	worker();
}
