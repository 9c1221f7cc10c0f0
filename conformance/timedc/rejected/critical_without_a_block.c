/*
 * critical is followed by a block.
 */
#include <cilktc.h>

task worker()
{
	critical /* error: OB4013 */
		puts("");
	fdelay(10, ms);
}

int main(void)
{
	worker();
}
