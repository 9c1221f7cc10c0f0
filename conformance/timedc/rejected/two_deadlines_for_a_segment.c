/*
 * Code that may come to two firm points with different deadlines has no single one.
 */
#include <cilktc.h>

static int choose(void)
{
	return 1;
}

static void work(void)
{
}

task worker()
{
	work(); /* error: OB4006 */
	if (choose())
		fdelay(10, ms);
	else
		fdelay(20, ms);
}

int main(void)
{
	worker();
}
