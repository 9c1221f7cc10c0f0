/*
 * exit ends the program from any task at once.
 * duration: 1s
 * status: 4
 * trace: 0 main start, end
 * trace: 0 other start, arrive @o
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p
 * output: bye
 */
#include <cilktc.h>

task other()
{
	sdelay(500, ms); /* @o */
	puts("never");
}

task worker()
{
	sdelay(10, ms); /* @p */
	puts("bye");
	exit(4);
}

int main(void)
{
	other();
	worker();
}
