/*
 * Macros may stand for units, for the word task, and for the constructs' names.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @a
 * trace: 10ms worker release @a, arrive @b
 * trace: 15ms worker release @b, arrive @c
 * trace: 17ms worker release @c, end
 */
#include <cilktc.h>

#define UNIT ms
#define MICRO us
#define THREAD task
#define WAIT sdelay
#define DEADLINE_MISS_IS_FIRM ftp
#define PERIOD 10

THREAD worker()
{
	WAIT(PERIOD, UNIT); /* @a */
	WAIT(PERIOD * 500, MICRO); /* @b */
	DEADLINE_MISS_IS_FIRM(2, 1, UNIT); /* @c */
}

int main(void)
{
	worker();
}
