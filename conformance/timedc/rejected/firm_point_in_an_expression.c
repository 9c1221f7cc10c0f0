/*
 * An abort cannot continue behind something that its expression has done already, nor at a point
 * that C may leave out.
 */
#include <cilktc.h>

static long work(void)
{
	return 2;
}

task worker()
{
	long n = 1;

	n = work() + fdelay(10, ms); /* error: OB4012 */
	printf("%ld %ld\n", work(), (long)hdelay(10, ms)); /* error: OB4012 */
	work();
	n = n++ + fdelay(10, ms); /* error: OB4012 */
	work();
	n = n ? fdelay(10, ms) : 0; /* error: OB4012 */
	work();
	n = n && fdelay(10, ms); /* error: OB4012 */
}

int main(void)
{
	worker();
}
