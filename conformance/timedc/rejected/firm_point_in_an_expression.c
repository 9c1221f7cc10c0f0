/*
 * An abort cannot go on in the middle of an expression.
 */
#include <cilktc.h>

static long twice(long n)
{
	return 2 * n;
}

task worker()
{
	long n = 1;

	n = n + fdelay(10, ms); /* error: OB4012 */
	n = twice(hdelay(10, ms)); /* error: OB4012 */
	n = n ? fdelay(10, ms) : 0; /* error: OB4012 */
}

int main(void)
{
	worker();
}
