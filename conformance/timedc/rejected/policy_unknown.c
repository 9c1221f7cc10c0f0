/*
 * spolicy knows five policies.
 */
#include <cilktc.h>

task worker()
{
	spolicy(ROUND_ROBIN); /* error: OB4013 */
	fdelay(10, ms);
}

int main(void)
{
	worker();
}
