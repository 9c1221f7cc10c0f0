/*
 * skipdelay without a point behind it.
 */
#include <cilktc.h>

int main(void)
{
	sdelay(10, ms);
	skipdelay; /* error: OB4009 */
	return 0;
}
