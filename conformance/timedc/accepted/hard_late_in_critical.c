/*
 * What a critical block overruns is told to the handler in nanoseconds.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 25ms worker abort @p 15ms, late @p 15ms, release @p 15ms, end
 * output: missed by 15000000
 * output: 15
 */
#include <cilktc.h>

static void on_late(const struct timedc_late *late)
{
	printf("missed by %lld\n", (long long)late->overshoot_ns);
}

task worker()
{
	long overshoot;

	timedc_on_late(on_late);
	critical {
		__attribute__((exectime(25, ms)));
	}
	overshoot = hdelay(10, ms); /* @p */
	printf("%ld\n", overshoot);
}

int main(void)
{
	worker();
}
