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
	worker(); /* error: OB4008 */
}

int main(void)
{
	for (int i = 0; i < 2; i++)
		start();
}
