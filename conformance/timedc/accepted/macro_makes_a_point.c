/*
 * A macro may expand to a timing point; its place is where the macro is used.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @a, release @a, arrive @b
 * trace: 20ms worker release @b, arrive @c
 * trace: 50ms worker release @c, end
 */
#include <cilktc.h>

#define TICK fdelay(10, ms)
#define EVERY(n) sdelay((n) * 10, ms)

__attribute__((exectime(30, ms))) static void work(void) { }

task worker()
{
	work();
	TICK; /* @a */
	TICK; /* @b */
	EVERY(1 + 2); /* @c */
}

int main(void)
{
	worker();
}
