/*
 * An abort that falls in a critical block takes effect at its end; the overshoot tells how late.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 7ms
 * trace: 30ms worker release @p 7ms, end
 * output: in 5, out 15
 * output: late 7, aborted 1
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void) { }

task worker()
{
	long late;

	work();
	critical {
		printf("in %d, ", 5);
		work();
		work();
		printf("out %d\n", 15);
	}
	puts("not reached");
	late = ftp(30, 8, ms); /* @p */
	printf("late %ld, aborted %d\n", late, timedc_aborted());
}

int main(void)
{
	worker();
}
