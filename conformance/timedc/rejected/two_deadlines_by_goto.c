/*
 * Jumps lead to points too.
 */
#include <cilktc.h>

static void work(void)
{
}

task worker(int kind)
{
	work(); /* error: OB4006 */
	if (kind == 1)
		goto slow;
	fdelay(1, ms);
	return NULL;
slow:
	hdelay(2, ms);
}

int main(void)
{
	worker(1);
}
