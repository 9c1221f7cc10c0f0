/*
 * A loop without an end and without timing points is left by the abort to the point behind it.
 *
 * duration: 100ms
 * trace: 0 main start, end
 * trace: 0 improve start
 * trace: 25ms improve abort @p, release @p
 * trace: 50ms improve abort @q, release @q, end
 * output: 3 rounds
 * output: 6 rounds
 */
#include <stdio.h>
#include <cilktc.h>

__attribute__((exectime(8, ms))) static int better(int value)
{
	return value + 1;
}

static int value, rounds;

task improve()
{
	while (1) {
		int next = better(value);
		critical {
			value = next;
			rounds++;
		}
	}
	fdelay(25, ms);			/* @p */
	printf("%d rounds\n", rounds);
	for (;;) {
		value = better(value);
		rounds++;
	}
	fdelay(25, ms);			/* @q */
	printf("%d rounds\n", rounds);
}

int main(void)
{
	improve();
	return 0;
}
