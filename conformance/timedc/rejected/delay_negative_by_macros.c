/*
 * Constant expressions are evaluated, macros too.
 */
#include <cilktc.h>

#define PERIOD 3
#define LEAD (2 * 5)

task worker()
{
	fdelay(PERIOD - LEAD, ms); /* error: OB4002 */
}

int main(void)
{
	worker();
}
