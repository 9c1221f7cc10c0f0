/*
 * A fifochannel gives each value once, in the order of writing; reading waits for a value.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 writer start, write queue, write queue, write queue, arrive @w
 * trace: 10ms writer release @w, write queue, end
 * trace: 0 reader start, arrive @r
 * trace: 5ms reader release @r, read queue, read queue, read queue
 * trace: 10ms reader read queue, end
 * output: 1 2 3 4 0
 */
#include <cilktc.h>

int fifochannel(queue);

task writer()
{
	for (int i = 1; i <= 3; i++)
		cwrite(queue, i);
	sdelay(10, ms); /* @w */
	cwrite(queue, 4);
}

task reader()
{
	int a, b, c, d;

	sdelay(5, ms); /* @r */
	cread(queue, a);
	cread(queue, b);
	cread(queue, c);
	cread(queue, d);
	printf("%d %d %d %d %d\n", a, b, c, d, nelem(queue));
}

int main(void)
{
	writer();
	reader();
}
