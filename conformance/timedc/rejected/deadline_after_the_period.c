/*
 * A deadline may not be after the release, of whatever kind the point is.
 */
#include <cilktc.h>

#define PERIOD 10

task worker()
{
	stp(10, 20, ms); /* error: OB4003 */
	ftp(PERIOD, 2 * PERIOD, us); /* error: OB4003 */
	htp(10, 11, sec); /* error: OB4003 */
	ftp(10, 10, ms);
}

int main(void)
{
	worker();
}
