/*
 * While memory of the segment has not been given back, its abort waits.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 5ms
 * trace: 20ms worker release @p 5ms, end
 * output: used
 */
#include <cilktc.h>

__attribute__((exectime(15, ms))) static void work(void) { }

task worker()
{
	char *buffer = malloc(100);

	snprintf(buffer, 100, "used");
	work();
	puts(buffer);
	free(buffer);
	puts("not reached");
	ftp(20, 10, ms); /* @p */
}

int main(void)
{
	worker();
}
