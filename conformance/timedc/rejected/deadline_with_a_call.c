/*
 * A deadline may be evaluated several times, so it may not have effects.
 */
#include <cilktc.h>

static int next(void)
{
	return 3;
}

task worker()
{
	int n = 3;

	fdelay(next(), ms); /* error: OB4013 */
	ftp(10, n++, ms); /* error: OB4013 */
	ftp(next(), n, ms);
	sdelay(next(), ms);
}

int main(void)
{
	worker();
}
