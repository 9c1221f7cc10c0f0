/*
 * Without a stated size a fifochannel holds 1,024 values.
 * duration: 1s
 * trace: 0 main start, 1024*write big, full big, end
 * output: 1024 1 0
 * says: big
 */
#include <cilktc.h>

int fifochannel(big);

int main(void)
{
	int i = 0, last;

	while ((last = cwrite(big, i)) == 0)
		i++;
	printf("%d %d ", nelem(big), last);
	cinit(big, 0);
	printf("%d\n", nelem(big));
	return 0;
}
