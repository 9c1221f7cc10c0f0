/*
 * A called function's firm point would end the guarded segment of its caller.
 */
#include <cilktc.h>

static void cycle(void)
{
	puts("");
	fdelay(10, ms);
}

task worker()
{
	for (int i = 0;; i++) {
		puts("");
		if (i % 2)
			cycle(); /* error: OB4012 */
		fdelay(20, ms);
	}
}

int main(void)
{
	worker();
}
