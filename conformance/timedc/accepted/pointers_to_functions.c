/*
 * Functions with points may be called through pointers, tables and callbacks.
 * duration: 1s
 * trace: 0 main start, arrive @a
 * trace: 1ms main release @a, arrive @b
 * trace: 3ms main release @b, end
 */
#include <cilktc.h>

static void one(void) { sdelay(1, ms); /* @a */ }
static void two(void) { sdelay(2, ms); /* @b */ }

static void (*const table[])(void) = {one, two};

static void both(void (*f)(void), void g(void))
{
	(*f)();
	g();
}

int main(void)
{
	both(table[0], &two);
	return 0;
}
