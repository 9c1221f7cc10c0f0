/*
 * A called function's firm point would end the guarded segment of its caller.
 */
#include <cilktc.h>

static void cycle(void)
{
	puts("");
	fdelay(10, ms); /* error: OB4012 */
}

task worker()
{
	while (1) {
		cycle();
		puts("");
		fdelay(20, ms);
	}
}

int main(void)
{
	worker();
}
