/*
 * A timing argument must be assigned on every path, through branches, loops, switches and jumps.
 */
#include <cilktc.h>

int main(int argc, char **argv)
{
	int a, b, c, d;

	(void)argv;
	if (argc > 1)
		a = 1;
	sdelay(a, ms); /* error: OB4004 */
	for (int i = 1; i < argc; i++)
		b = i;
	sdelay(b, ms); /* error: OB4004 */
	switch (argc) {
	case 1:
		c = 1;
		break;
	case 2:
		c = 2;
	}
	sdelay(c, ms); /* error: OB4004 */
	if (argc > 3)
		goto over;
	d = 4;
over:
	sdelay(d, ms); /* error: OB4004 */
	return 0;
}
