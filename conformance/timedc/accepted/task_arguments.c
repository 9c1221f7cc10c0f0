/*
 * A task gets copies of its call's arguments: numbers, structs, pointers, floating point, several.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 15ms worker release @p, end
 * output: 15 2.5 x 7 8 name
 */
#include <cilktc.h>

struct pair { int a; char b; };

task worker(int span, double factor, char letter, struct pair pair, const char *name, int *shared)
{
	sdelay(span, ms); /* @p */
	printf("%d %.1f %c %d %d %s\n", span, factor, letter, pair.a, *shared, name);
}

static int shared;

int main(void)
{
	int span = 15;
	struct pair pair = {7, 'p'};

	worker(span, 2.5, 'x', pair, "name", &shared);
	span = 99;
	pair.a = 99;
	shared = 8;
}
