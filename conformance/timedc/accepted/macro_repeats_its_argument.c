/*
 * A macro may use its argument several times, once or not at all; points come as often.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 3ms main release @p, arrive @p.2
 * trace: 6ms main release @p.2, arrive @q
 * trace: 11ms main release @q, end
 */
#include <cilktc.h>

#define TWICE(x) do { x; x; } while (0)
#define ONCE(x) x
#define NOTHING(...)

int main(void)
{
	TWICE(sdelay(3, ms)); /* @p */
	ONCE(ONCE(sdelay)(5, ms)); /* @q */
	NOTHING(sdelay(-1, years), critical)
	return 0;
}
