/*
 * A delay without a unit is taken as milliseconds, with a warning.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @a
 * trace: 20ms worker release @a, arrive @b
 * trace: 50ms worker release @b, end
 */
#include <cilktc.h>

task worker()
{
	sdelay(20); /* @a */ /* warning: OB4101 */
	fdelay(30); /* @b */ /* warning: OB4101 */
}

int main(void)
{
	worker();
}
