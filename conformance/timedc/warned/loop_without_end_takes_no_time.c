/*
 * Virtual time does not stand still in a loop without a declared time: an iteration is assumed to
 * last 100 us.
 *
 * duration: 25ms
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @p, release @p
 * trace: 20ms worker abort @p, release @p
 */
#include <cilktc.h>

static int value;

static void improve(void)
{
	value++;
}

task worker()
{
	while (1) {
		while (1) /* warning: OB4106 */
			improve();
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
