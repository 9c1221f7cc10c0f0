/*
 * A critical block must be followed by a firm or hard point, not by the function's end.
 */
#include <cilktc.h>

task worker()
{
	fdelay(10, ms);
	critical { /* error: OB4005 */
		puts("");
	}
}

int main(void)
{
	worker();
}
