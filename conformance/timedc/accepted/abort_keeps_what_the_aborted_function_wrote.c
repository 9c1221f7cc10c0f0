/*
 * What an aborted function wrote through a pointer stays written.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 searcher start
 * trace: 25ms searcher abort @p, release @p, end
 * output: best 9
 */
#include <cilktc.h>

__attribute__((exectime(10, ms))) static int look(int at)
{
	return at * at;
}

static void search(int *best)
{
	for (int at = 2; at < 100; at++)
		*best = look(at);
}

task searcher()
{
	int best = -1;

	search(&best);
	fdelay(25, ms); /* @p */
	printf("best %d\n", best);
}

int main(void)
{
	searcher();
}
