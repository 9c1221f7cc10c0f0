/*
 * Without a handler a hard point that is missed says so and ends the program with status 70, after
 * the program's own timedc_safe_state.
 * duration: 1s
 * status: 70
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @p, late @p
 * output: safe
 * says: worker
 */
#include <cilktc.h>

__attribute__((exectime(50, ms))) static void work(void) { }

void timedc_safe_state(void)
{
	puts("safe");
	fflush(stdout);
}

task worker()
{
	work();
	hdelay(10, ms); /* @p */
	puts("never");
}

int main(void)
{
	worker();
}
