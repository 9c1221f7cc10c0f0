/*
 * As the translator makes it for FreeRTOS, by hand: two firm tasks with different deadlines, a user
 * function in between, a channel with a bounded read, critical, skip and a task's argument.
 */
#include <timedc.h>
#include <stdio.h>
#include "shim.h"

#ifdef FIRST_TICK
__attribute__((constructor)) static void count_from(void)
{
	shim_first_tick = FIRST_TICK;
}
#endif

static const struct timedc_point timedc_points[5];
static void timedc_start_fast(int work);
static void timedc_start_slow(void);

TIMEDC_FIFO(, int, numbers, 4);
TIMEDC_LATEST(, int, latest);

void timedc_traced(timedc_ns at, const char *task, const char *event, const char *place,
		   timedc_ns value)
{
	printf("%lld,%s,%s,%s,%lld\n", (long long)at, task, event, place, (long long)value);
}

static void compute(int ticks)
{
	for (int i = 0; i < ticks; i++) {
		timedc_poll();
		shim_work(1); timedc_poll();
	}
}

static void *fast(int work)
{
	TIMEDC_FRAME;
	TIMEDC_KEEP(work);
	int i = 0;
	TIMEDC_KEEP(i);
	for (; i < 3; i++) {
		TIMEDC_GUARD(&timedc_points[0], 3000000, timedc_0);
		timedc_poll();
		cwrite(numbers, i); timedc_poll();
		compute(work * i); timedc_poll();
timedc_0:;
		timedc_point(&timedc_points[0], 5000000, 3000000); timedc_poll();
	}
	TIMEDC_UNGUARD();
	return NULL;
}

static void *slow(void)
{
	TIMEDC_FRAME;
	int value = -1, i = 0;
	TIMEDC_KEEP(value);
	TIMEDC_KEEP(i);
	for (; i < 4; i++) {
		TIMEDC_GUARD(&timedc_points[1], 7000000, timedc_1);
		timedc_poll();
		cread(numbers, value); timedc_poll();
		if (i == 2) {
			TIMEDC_CRITICAL;
			shim_work(9); timedc_poll();
			value = 77;
		}
		cwrite(latest, value); timedc_poll();
timedc_1:;
		timedc_point(&timedc_points[1], 7000000, TIMEDC_SAME); timedc_poll();
		printf("value %d aborted %d\n", value, timedc_aborted());
	}
	TIMEDC_UNGUARD();
	timedc_skip();
	timedc_point(&timedc_points[2], 10000000, TIMEDC_SAME); timedc_poll();
	printf("at %ld us\n", timedc_gettime(-6));
	return NULL;
}

static const struct timedc_task timedc_task_main;

int main(void)
{
	TIMEDC_MAIN(&timedc_task_main);
	timedc_start_slow(); timedc_poll();
	timedc_start_fast(2); timedc_poll();
	timedc_point(&timedc_points[3], 20000000, TIMEDC_SAME); timedc_poll();
	int seen;
	cread(latest, seen);
	printf("seen %d\n", seen);
	return 3;
}

static const struct timedc_point timedc_points[5] = {
	{"16", "fast", __FILE__, 16, TIMEDC_FIRM, -3}, {"30", "slow", __FILE__, 30, TIMEDC_FIRM, -6},
	{"35", "slow", __FILE__, 35, TIMEDC_SOFT, -3}, {"42", "main", __FILE__, 42, TIMEDC_SOFT, -3},
};
struct timedc_arguments_fast { int work; };
static void timedc_body_fast(void *p) { struct timedc_arguments_fast *a = p; fast(a->work); }
static void timedc_body_slow(void *p) { (void)p; slow(); }
static const struct timedc_task timedc_task_fast = {
	"fast", __FILE__, 10, timedc_body_fast, sizeof(struct timedc_arguments_fast),
	5000000, 3000000, 0};
static const struct timedc_task timedc_task_slow = {
	"slow", __FILE__, 20, timedc_body_slow, 0, 7000000, 7000000, 0};
static const struct timedc_task timedc_task_main = {
	"main", __FILE__, 36, 0, 0, 20000000, 20000000, 0};
static void timedc_start_fast(int work)
{
	struct timedc_arguments_fast a = {work};
	timedc_start(&timedc_task_fast, &a);
}
static void timedc_start_slow(void) { timedc_start(&timedc_task_slow, 0); }
static const struct timedc_task *const tasks[] = {
	&timedc_task_fast, &timedc_task_slow, &timedc_task_main};
static struct timedc_unit unit = {.tasks = tasks, .task_count = 3};
__attribute__((constructor)) static void timedc_constructor(void) { timedc_register(&unit); }
