/*
 * A unit is a word of the language, not a value.
 */
#include <cilktc.h>

int main(void)
{
	int unit = -3;

	sdelay(10, unit); /* error: OB4001 */
	return 0;
}
