/*
 * A timing point may be the step of a for loop, alone or beside others.
 * duration: 1s
 * trace: 0 main start, arrive @a
 * trace: 10ms main release @a, arrive @a
 * trace: 20ms main release @a, arrive @b
 * trace: 25ms main release @b, arrive @b
 * trace: 30ms main release @b, end
 */
#include <cilktc.h>

int main(void)
{
	int n = 0;

	for (; n < 2; sdelay(10, ms)) /* @a */
		n++;
	for (int i = 0; i < 2; i++, sdelay(5, ms)) /* @b */
		n--;
	return n;
}
