/*
 * A negative constant is refused as period and as deadline.
 */
#include <cilktc.h>

int main(void)
{
	sdelay(-1, ms); /* error: OB4002 */
	stp(10, -5, ms); /* error: OB4002 */
	stp(-10, infty, ms); /* error: OB4002 */
	return 0;
}
