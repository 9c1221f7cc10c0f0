/*
 * main may have firm points; its origin is the program's start.
 * duration: 1s
 * trace: 0 main start
 * trace: 10ms main abort @p, release @p
 * trace: 20ms main abort @p, release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(11, ms))) static void work(void)
{
}

int main(void)
{
	for (int i = 0; i < 2; ++i) {
		work();
		fdelay(10, ms); /* @p */
	}
	return 0;
}
