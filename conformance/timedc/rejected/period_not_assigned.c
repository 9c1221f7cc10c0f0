/*
 * A timing argument that nothing was assigned to.
 */
#include <cilktc.h>

int main(void)
{
	int period;

	sdelay(period, ms); /* error: OB4004 */
	return 0;
}
