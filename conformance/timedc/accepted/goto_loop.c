/*
 * Loops made of goto have guards like any other.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 4ms worker arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @p, release @p
 * trace: 24ms worker arrive @p
 * trace: 30ms worker release @p, end
 * output: end 3
 */
#include <cilktc.h>

__attribute__((exectime(4, ms))) static void quick(void) { }
__attribute__((exectime(40, ms))) static void slow(void) { }

task worker()
{
	int n = 0;

again:
	if (n == 1)
		goto slowly;
	quick();
	goto join;
slowly:
	slow();
join:
	fdelay(10, ms); /* @p */
	if (++n < 3)
		goto again;
	printf("end %d\n", n);
}

int main(void)
{
	worker();
}
