/*
 * cinit empties a fifochannel: what waited is gone.
 * duration: 1s
 * trace: 0 main start, write c, write c, write c, read c, end
 * output: 2 0 9
 */
#include <cilktc.h>

int fifochannel(c);

int main(void)
{
	int got, before;

	cwrite(c, 7);
	cwrite(c, 8);
	before = nelem(c);
	cinit(c, 0);
	printf("%d %d ", before, nelem(c));
	cwrite(c, 9);
	cread(c, got);
	printf("%d\n", got);
	return 0;
}
