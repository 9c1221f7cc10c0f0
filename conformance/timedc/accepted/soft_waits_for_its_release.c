/*
 * A soft timing point waits until origin + period; its release is the next one's origin.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 10ms..20ms/10ms main release @p, arrive @p
 * trace: 30ms main release @p, end
 */
#include <cilktc.h>

int main(void)
{
	for (int i = 0; i < 3; i++)
		sdelay(10, ms); /* @p */
	return 0;
}
