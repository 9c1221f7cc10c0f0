/*
 * Variables, members, labels, types and parameters may be called ms, us, sec, task, critical.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 5ms main release @p, arrive @q
 * trace: 7ms main release @q, arrive @r
 * trace: 10ms main release @r, end
 * output: 5 2 3 4 9 1
 */
#include <cilktc.h>

struct clock { int ms, us, sec; struct { int task; } critical; };

static int scale(int ms)
{
	int sec = ms;

	return sec;
}

int main(void)
{
	struct clock clock = {.ms = 5, .us = 2, .sec = 3, .critical = {.task = 4}};
	struct clock *task = &clock;
	int critical = 9;
	enum { ns = 1 };

	sdelay(clock.ms, ms); /* @p */
	sdelay(task->us, ms); /* @q */
	sdelay(scale(clock.sec), ms); /* @r */
	if (critical > 9)
		goto infty;
	printf("%d %d %d %d %d %d\n", task->ms, task->us, task->sec, task->critical.task, critical,
	       (int)ns);
infty:
	return 0;
}
