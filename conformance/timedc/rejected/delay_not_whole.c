/*
 * Delays are whole numbers.
 */
#include <cilktc.h>

int main(void)
{
	double half = 0.5;

	sdelay(1.5, ms); /* error: OB4013 */
	sdelay(half, ms); /* error: OB4013 */
	return 0;
}
