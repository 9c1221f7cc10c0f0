/*
 * The task's own error handler runs at the point before anything else; then the point waits.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 12ms worker abort @p, late @p
 * trace: 20ms worker release @p
 * trace: 25ms worker arrive @p
 * trace: 40ms worker release @p, end
 * output: worker 0 1
 * output: on
 * output: on
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void quick(void) { }
__attribute__((exectime(50, ms))) static void slow(void) { }

static void on_late(const struct timedc_late *late)
{
	printf("%s %lld %d\n", late->task, (long long)late->overshoot_ns, late->line > 0);
}

task worker()
{
	timedc_on_late(on_late);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			slow();
		else
			quick();
		htp(20, 12, ms); /* @p */
		puts("on");
	}
}

int main(void)
{
	worker();
}
