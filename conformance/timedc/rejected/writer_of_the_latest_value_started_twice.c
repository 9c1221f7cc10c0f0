/*
 * Two starts of one task are two writers.
 */
#include <cilktc.h>

int lvchannel(level);

task worker(int n)
{
	cwrite(level, n); /* error: OB4007 */
	sdelay(10, ms);
}

int main(void)
{
	worker(1);
	worker(2);
}
