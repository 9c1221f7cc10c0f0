/*
 * A timing point with a deadline needs its unit.
 */
#include <cilktc.h>

int main(void)
{
	stp(20, 10); /* error: OB4001 */
	return 0;
}
