/*
 * A cread that finds nothing until the deadline is aborted; its variable keeps its value.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 reader start
 * trace: 5ms reader read values
 * trace: 5ms reader arrive @p
 * trace: 10ms reader release @p
 * trace: 20ms reader abort @p, release @p, end
 * trace: 0 writer start, arrive @w
 * trace: 5ms writer release @w, write values, end
 * output: 42
 * output: 42
 */
#include <cilktc.h>

int fifochannel(values);

task reader()
{
	int value = -1;

	for (int i = 0; i < 2; i++) {
		cread(values, value);
		fdelay(10, ms); /* @p */
		printf("%d\n", value);
	}
}

task writer()
{
	sdelay(5, ms); /* @w */
	cwrite(values, 42);
}

int main(void)
{
	reader();
	writer();
}
