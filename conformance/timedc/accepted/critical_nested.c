/*
 * Critical blocks nest; an abort waits for the end of the outermost.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 20ms worker abort @p 10ms, release @p 10ms, end
 * output: inner
 * output: outer
 */
#include <cilktc.h>

__attribute__((exectime(10, ms))) static void work(void) { }

task worker()
{
	critical {
		critical {
			work();
			puts("inner");
		}
		work();
		puts("outer");
	}
	puts("not reached");
	fdelay(10, ms); /* @p */
}

int main(void)
{
	worker();
}
