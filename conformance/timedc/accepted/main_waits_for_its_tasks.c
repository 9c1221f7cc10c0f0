/*
 * main's value is the program's status, after all tasks have ended.
 * duration: 1s
 * status: 3
 * trace: 0 main start, arrive @m
 * trace: 5ms main release @m, end
 * trace: 0 worker start, arrive @p
 * trace: 50ms worker release @p, end
 * output: main
 * output: worker
 */
#include <cilktc.h>

task worker()
{
	sdelay(50, ms); /* @p */
	puts("worker");
}

int main(void)
{
	worker();
	sdelay(5, ms); /* @m */
	puts("main");
	return 3;
}
