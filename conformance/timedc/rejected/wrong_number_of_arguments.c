/*
 * Constructs have the arguments that the reference states.
 */
#include <cilktc.h>

int main(void)
{
	sdelay(); /* error: OB4013 */
	sdelay(1, 2, ms); /* error: OB4013 */
	stp(1, 1, ms, 4); /* error: OB4013 */
	spriority(); /* error: OB4013 */
	return 0;
}
