/*
 * Everything that is wrong is said at once.
 */
#include <cilktc.h>

int lvchannel(level);

task one(int n)
{
	int period;

	cwrite(level, 1); /* error: OB4007 */
	sdelay(-1, ms); /* error: OB4002 */
	sdelay(period, ms); /* error: OB4004 */
	stp(1, 2, ms); /* error: OB4003 */
	sdelay(n, years); /* error: OB4001 */
	skipdelay; /* error: OB4009 */
}

int main(void)
{
	one(1);
	one(2);
	for (;;)
		one(3); /* error: OB4008 */
}
