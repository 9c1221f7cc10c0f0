/*
 * What #if leaves out does not exist; what it chooses does.
 * duration: 1s
 * cc: -DFAST -DPERIOD=7
 * trace: 0 main start, arrive @a
 * trace: 7ms main release @a, arrive @c
 * trace: 8ms main release @c, end
 */
#include <cilktc.h>

int main(void)
{
#ifdef FAST
	sdelay(PERIOD, ms); /* @a */
#else
	sdelay(PERIOD * 10); /* without a unit */
	critical { nonsense }
#endif
#if 0
	for (;;) { worker(); sdelay(-1, fortnights); }
#elif defined(SLOW)
	sdelay(100, ms);
#else
	sdelay(1, ms); /* @c */
#endif
	return 0;
}
