/*
 * Definitions in the style of Kernighan and Ritchie, for functions and for tasks.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 12ms worker release @p, arrive @p
 * trace: 24ms worker release @p, end
 * output: worker 2
 */
#include <cilktc.h>

int wait_for(span, times)
	int span;
	int times;
{
	return span * times;
}

task worker(name, count)
	char *name;
	int count;
{
	int i;

	for (i = 0; i < count; i++)
		sdelay(wait_for(6, 2), ms); /* @p */
	printf("%s %d\n", name, i);
}

int main()
{
	worker("worker", 2);
}
