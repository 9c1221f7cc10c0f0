/*
 * An lvchannel has 0, then what cinit says, then what was written last; reading never waits.
 * duration: 1s
 * trace: 0 main start, read zero, read level, end
 * trace: 0 reader start, arrive @r
 * trace: 5ms reader release @r, read level, arrive @s
 * trace: 30ms reader release @s, read level, read level, end
 * trace: 0 writer start, arrive @w
 * trace: 10ms writer release @w, write level, arrive @x
 * trace: 20ms writer release @x, write level, end
 * output: 0 100
 * output: 100 1
 * output: 2 2
 */
#include <cilktc.h>

int lvchannel(level);
int lvchannel zero;

task reader()
{
	int a, b;

	sdelay(5, ms); /* @r */
	cread(level, a);
	printf("%d %d\n", a, nelem(level));
	sdelay(25, ms); /* @s */
	cread(level, a);
	cread(level, b);
	printf("%d %d\n", a, b);
}

task writer()
{
	sdelay(10, ms); /* @w */
	cwrite(level, 1);
	sdelay(10, ms); /* @x */
	cwrite(level, 2);
}

int main(void)
{
	int first, second;

	cinit(level, 100);
	cread(zero, first);
	cread(level, second);
	printf("%d %d\n", first, second);
	reader();
	writer();
}
