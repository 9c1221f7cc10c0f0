/*
 * A task may not be started in a loop of any kind.
 */
#include <cilktc.h>

task worker(int n)
{
	sdelay(n, ms);
}

int main(void)
{
	int i;

	for (i = 1; i < 4; i++)
		worker(i); /* error: OB4008 */
	while (i-- > 0)
		if (i)
			worker(i); /* error: OB4008 */
	do {
		worker(2); /* error: OB4008 */
	} while (0 * i);
again:
	worker(1); /* error: OB4008 */
	if (i++ < 3)
		goto again;
}
