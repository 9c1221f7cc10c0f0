/*
 * A point with the period 0 does not wait, and may have a deadline all the same: it says by how
 * much the task came after it.
 *
 * duration: 20ms
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 3ms worker arrive @p, release @p
 * trace: 8ms worker arrive @q 4ms, release @q 4ms, end
 * output: 0
 * output: 4
 */
#include <stdio.h>
#include <cilktc.h>

task worker()
{
	__attribute__((exectime(3, ms)));
	printf("%ld\n", stp(0, 300, ms)); /* @p */
	__attribute__((exectime(5, ms)));
	printf("%ld\n", stp(0, 1, ms)); /* @q */
}

int main(void)
{
	worker();
}
