/*
 * Warnings are said beside errors; the error decides.
 */
#include <cilktc.h>

int main(void)
{
	sdelay(20); /* warning: OB4101 */
	sdelay(-20); /* warning: OB4101, error: OB4002 */
	return 0;
}
