/*
 * So they are in the functions that guarded code calls.
 */
#include <cilktc.h>

static int child(void)
{
	return fork(); /* error: OB4015 */
}

task worker()
{
	child();
	fdelay(10, ms);
}

int main(void)
{
	worker();
}
