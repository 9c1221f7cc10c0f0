/*
 * What is no unit is refused, in every construct that has one.
 */
#include <cilktc.h>

enum { minutes = 60 };

task worker()
{
	sdelay(1, minutes); /* error: OB4001 */
	gettime(fortnights); /* error: OB4001 */
	aperiodic(10, hours); /* error: OB4001 */
	fdelay(10, -4); /* error: OB4001 */
}

int main(void)
{
	worker();
}
