/*
 * After the inner point either may be next, and a call runs there.
 */
#include <cilktc.h>

static void work(void)
{
}

task worker()
{
	for (;;) {
		do {
			fdelay(5, ms);
			work(); /* error: OB4006 */
		} while (rand() % 2);
		fdelay(20, ms);
	}
}

int main(void)
{
	worker();
}
