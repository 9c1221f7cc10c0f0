/*
 * The first segment of a task counts from the call that started it, and is aborted as any other.
 * duration: 1s
 * trace: 0 main start, arrive @m
 * trace: 5ms main release @m, end
 * trace: 5ms late start
 * trace: 13ms late abort @p
 * trace: 15ms late release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(100, ms))) static void work(void)
{
}

task late()
{
	work();
	ftp(10, 8, ms); /* @p */
}

int main(void)
{
	sdelay(5, ms); /* @m */
	late();
}
