/*
 * An abort ends user functions however deep, recursion among them.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 deep start
 * trace: 10ms deep abort @p, release @p
 * trace: 20ms deep abort @p, release @p, end
 * output: 3
 * output: 6
 */
#include <cilktc.h>

static int entered;

__attribute__((exectime(3, ms))) static void leaf(void)
{
	entered++;
}

static int descend(int depth)
{
	leaf();
	return depth == 0 ? 0 : 1 + descend(depth - 1);
}

static void middle(void)
{
	descend(100);
	puts("never");
}

task deep()
{
	for (int i = 0; i < 2; i++) {
		middle();
		fdelay(10, ms); /* @p */
		printf("%d\n", entered);
	}
}

int main(void)
{
	deep();
}
