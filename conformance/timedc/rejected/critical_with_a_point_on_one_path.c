/*
 * The point must follow on every way from the block's end.
 */
#include <cilktc.h>

task worker(int firm)
{
	critical { /* error: OB4005 */
		puts("");
	}
	if (firm)
		fdelay(10, ms);
}

int main(void)
{
	worker(1);
}
