/*
 * A function that two tasks call writes for both.
 */
#include <cilktc.h>

int lvchannel(level);

static void set(int n)
{
	cwrite(level, n); /* error: OB4007 */
}

task one() { set(1); sdelay(1, ms); }
task two() { set(2); sdelay(1, ms); }

int main(void)
{
	one();
	two();
}
