/*
 * An lvchannel has one writer: a second task is refused.
 */
#include <cilktc.h>

int lvchannel(level);

task one()
{
	cwrite(level, 1);
	sdelay(10, ms);
}

task two()
{
	cwrite(level, 2); /* error: OB4007 */
	sdelay(10, ms);
}

int main(void)
{
	one();
	two();
}
