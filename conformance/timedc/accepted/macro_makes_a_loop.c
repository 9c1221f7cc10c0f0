/*
 * A macro may expand to a whole loop with its timing point, around the user's statements.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 3ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @p, release @p
 * trace: 23ms worker arrive @p
 * trace: 30ms worker release @p, end
 */
#include <cilktc.h>

#define PERIODIC(count, period, body) \
	do { \
		for (int round = 0; round < (count); round++) { \
			body \
			fdelay(period, ms); \
		} \
	} while (0)

__attribute__((exectime(3, ms))) static void quick(void) { }
__attribute__((exectime(30, ms))) static void slow(void) { }

task worker()
{
	PERIODIC(3, 10, if (round == 1) slow(); else quick(); ); /* @p */
}

int main(void)
{
	worker();
}
