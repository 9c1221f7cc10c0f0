/*
 * Every task has an error handler of its own.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 one start
 * trace: 10ms one abort @o, late @o, release @o, end
 * trace: 0 two start
 * trace: 20ms two abort @t, late @t, release @t, end
 * output: first one
 * output: second two
 */
#include <cilktc.h>

__attribute__((exectime(50, ms))) static void work(void) { }

static void first(const struct timedc_late *late) { printf("first %s\n", late->task); }
static void second(const struct timedc_late *late) { printf("second %s\n", late->task); }

task one()
{
	timedc_on_late(first);
	work();
	hdelay(10, ms); /* @o */
}

task two()
{
	timedc_on_late(&second);
	work();
	hdelay(20, ms); /* @t */
}

int main(void)
{
	one();
	two();
}
