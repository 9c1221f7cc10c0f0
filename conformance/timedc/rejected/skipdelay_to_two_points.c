/*
 * skipdelay needs one point that is next on every path.
 */
#include <cilktc.h>

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		skipdelay; /* error: OB4009 */
	if (argc > 2)
		sdelay(10, ms);
	else
		sdelay(20, ms);
	return 0;
}
