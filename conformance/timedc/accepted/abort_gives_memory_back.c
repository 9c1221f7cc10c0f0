/*
 * What timedc_on_abort was told to give back does not delay the abort; the last is called first.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 10ms worker abort @p
 * trace: 20ms worker release @p
 * trace: 25ms worker arrive @q
 * trace: 30ms worker release @q, end
 * output: second
 * output: first
 * output: on
 */
#include <cilktc.h>

__attribute__((exectime(15, ms))) static void work(void) { }
__attribute__((exectime(5, ms))) static void quick(void) { }

static void give_back(void *buffer)
{
	puts(buffer);
	free(buffer);
}

task worker()
{
	char *first = malloc(10), *second;

	timedc_on_abort(give_back, first);
	snprintf(first, 10, "first");
	second = malloc(10);
	timedc_on_abort(give_back, second);
	snprintf(second, 10, "second");
	work();
	puts("not reached");
	ftp(20, 10, ms); /* @p */
	puts("on");
	timedc_on_abort((void (*)(void *))puts, "never");
	quick();
	fdelay(10, ms); /* @q */
}

int main(void)
{
	worker();
}
