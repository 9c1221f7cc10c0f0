/*
 * Two calls of a task are two tasks with arguments and locals of their own.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, start, arrive @p, arrive @p
 * trace: 10ms worker release @p, arrive @p
 * trace: 15ms worker release @p, arrive @p
 * trace: 20ms worker release @p, end
 * trace: 30ms worker release @p, end
 * output: 10 2
 * output: 15 2
 */
#include <cilktc.h>

task worker(int span)
{
	int n;

	for (n = 0; n < 2; n++)
		fdelay(span, ms); /* @p */
	printf("%d %d\n", span, n);
}

int main(void)
{
	worker(10);
	worker(15);
}
