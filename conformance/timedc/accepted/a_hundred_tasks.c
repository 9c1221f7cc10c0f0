/*
 * A hundred firm tasks of one body, each with a deadline of its own, are each aborted at theirs.
 * duration: 1s
 * trace: 0 main start, arrive @m
 * trace: 500ms main release @m, end
 * trace: 0 worker 100*start
 * trace: 10ms..109ms/1ms worker abort @p
 * trace: 200ms worker 100*release @p, 100*end
 * output: 100 aborts, 0 wrong
 */
#include <cilktc.h>

#define TEN(x, n) x(n##0) x(n##1) x(n##2) x(n##3) x(n##4) x(n##5) x(n##6) x(n##7) x(n##8) x(n##9)
#define HUNDRED(x) TEN(x, 1) TEN(x, 2) TEN(x, 3) TEN(x, 4) TEN(x, 5) TEN(x, 6) TEN(x, 7) TEN(x, 8) \
	TEN(x, 9) TEN(x, 10)
#define START(n) worker(n);

static int aborts, wrong;

__attribute__((exectime(1, sec))) static void run(void) { }

task worker(int deadline)
{
	run();
	ftp(200, deadline, ms); /* @p */
	__atomic_fetch_add(timedc_aborted() ? &aborts : &wrong, 1, __ATOMIC_RELAXED);
}

int main(void)
{
	HUNDRED(START)
	sdelay(500, ms); /* @m */
	printf("%d aborts, %d wrong\n", aborts, wrong);
	return 0;
}
