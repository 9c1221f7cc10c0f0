/*
 * A function that starts a task may not be called in a loop.
 */
#include <cilktc.h>

task worker()
{
	sdelay(1, ms);
}

static void start(void)
{
	worker();
}

int main(void)
{
	for (int i = 0; i < 2; i++)
		start(); /* error: OB4008 */
}
