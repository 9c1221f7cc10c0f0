/*
 * What the C compiler has to say it says of the user's line, behind translated ones too.
 */
#include <cilktc.h>

#define TICK fdelay(10, ms)

task worker()
{
	critical { puts(""); }
	TICK;
	undeclared++; /* error: cc */
	fdelay(
		10, ms);
}

int main(void)
{
	worker();
	return undeclared_too; /* error: cc */
}
