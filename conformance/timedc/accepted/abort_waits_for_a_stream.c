/*
 * While a stream that was opened in the segment is not closed, the abort waits.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 5ms
 * trace: 20ms worker release @p 5ms, end
 * output: open
 */
#include <cilktc.h>

__attribute__((exectime(15, ms))) static void work(void) { }

task worker()
{
	FILE *file = fopen("/dev/null", "w");

	work();
	puts("open");
	fclose(file);
	puts("not reached");
	ftp(20, 10, ms); /* @p */
}

int main(void)
{
	worker();
}
