/* A firm task that is aborted, and one that reads what it sends until there is nothing more. */
#include <cilktc.h>
#include <stdio.h>
#include <shim.h>

int fifochannel(numbers);

static void compute(int ticks)
{
	while (ticks-- > 0)
		shim_work(1);
}

task sensor(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		cwrite(numbers, i);
		compute(4 * i);
		long late = fdelay(10, ms);
		printf("sensor %d: aborted %d, late %ld, at %ld ms\n", i, timedc_aborted(), late,
		       gettime(ms));
	}
}

task printer()
{
	int value = -1;

	for (;;) {
		cread(numbers, value);
		ftp(20, 15, ms);
		printf("printer: %d, aborted %d\n", value, timedc_aborted());
		if (timedc_aborted())
			break;
	}
}

int main(void)
{
	printer();
	sensor(4);
}
