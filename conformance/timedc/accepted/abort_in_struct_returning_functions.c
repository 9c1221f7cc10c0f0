/*
 * Functions that return structs, take them by value and have many arguments may be aborted.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @p, release @p
 * trace: 20ms worker abort @p, release @p, end
 * output: 0 0
 * output: 1.5 7
 */
#include <cilktc.h>

struct big { double x; long at[20]; };

__attribute__((exectime(6, ms))) static struct big make(struct big from, int a, int b, int c,
							int d, int e, int f, int g, int h)
{
	from.x += a * 0.5;
	from.at[0] += b + c + d + e + f + g + h;
	return from;
}

task worker()
{
	struct big big = {0};

	for (int i = 0; i < 2; i++) {
		struct big next = big;

		if (i == 1)
			big = (struct big){1.5, {7}};
		next = make(next, 1, 1, 1, 1, 1, 1, 1, 1);
		next = make(next, 1, 1, 1, 1, 1, 1, 1, 1);
		big = next;
		fdelay(10, ms); /* @p */
		printf("%g %ld\n", big.x, big.at[0]);
	}
}

int main(void)
{
	worker();
}
