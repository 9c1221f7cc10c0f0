/*
 * A deadline is made of the variables that its point sees, also when inner ones have their names.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 20ms worker abort @p, release @p, end
 * output: 2
 */
#include <cilktc.h>

__attribute__((exectime(8, ms))) static void work(void) { }

task worker()
{
	int deadline = 20, rounds = 0;

	for (int i = 0; i < 9; i++) {
		int deadline = 3;

		deadline += i;
		work();
		rounds += deadline > 0;
	}
	fdelay(deadline, ms); /* @p */
	printf("%d\n", rounds);
}

int main(void)
{
	worker();
}
