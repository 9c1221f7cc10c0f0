/*
 * timedc_on_abort keeps 16 in a segment, refuses more, and forgets them at the segment's end.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p
 * trace: 20ms worker abort @q, release @q, end
 * output: 16 4 0
 * output: 16
 */
#include <cilktc.h>

__attribute__((exectime(30, ms))) static void slow(void) { }

static int called;

static void count(void *by)
{
	called += *(int *)by;
}

task worker()
{
	int kept = 0, refused = 0, one = 1;

	for (int i = 0; i < 20; i++) {
		if (timedc_on_abort(count, &one) == 0)
			kept++;
		else
			refused++;
	}
	fdelay(10, ms); /* @p */
	printf("%d %d %d\n", kept, refused, called);
	for (int i = 0; i < 20; i++)
		timedc_on_abort(count, &one);
	slow();
	fdelay(10, ms); /* @q */
	printf("%d\n", called);
}

int main(void)
{
	worker();
}
