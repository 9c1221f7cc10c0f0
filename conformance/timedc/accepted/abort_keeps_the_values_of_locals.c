/*
 * After an abort, locals have the values that they had when it came: plain, register, arrays,
 * structs and the variable of the loop.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 holder start
 * trace: 35ms holder abort @p, release @p, end
 * output: sum 6, last 3, at 0 1 2 3, pair 3 9, twice 6
 */
#include <cilktc.h>

__attribute__((exectime(10, ms))) static void work(void) { }

struct pair { int a, b; };

task holder()
{
	int sum = 0, at[8] = {0};
	register int twice = 0;
	struct pair pair = {0, 0};
	int i;

	for (i = 0; i < 8; i++) {
		sum += i;
		at[i] = i;
		twice = 2 * i;
		pair = (struct pair){.a = i, .b = i * i};
		work();
	}
	fdelay(35, ms); /* @p */
	printf("sum %d, last %d, at %d %d %d %d, pair %d %d, twice %d\n", sum, i, at[0], at[1],
	       at[2], at[3], pair.a, pair.b, twice);
}

int main(void)
{
	holder();
}
