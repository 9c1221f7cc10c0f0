/*
 * Compound literals as arguments of points, tasks and channels.
 * duration: 1s
 * trace: 0 main start, write c, read c, arrive @p
 * trace: 7ms main release @p, end
 * trace: 7ms worker start, arrive @q
 * trace: 12ms worker release @q, end
 * output: 3 4
 */
#include <cilktc.h>

struct pair { int a, b; };
struct pair fifochannel(c);

task worker(struct pair p)
{
	sdelay(p.a + p.b, ms); /* @q */
}

int main(void)
{
	struct pair got;

	cwrite(c, ((struct pair){.b = 4, .a = 3}));
	cread(c, got);
	printf("%d %d\n", got.a, got.b);
	sdelay((int[]){5, 7}[1], ms); /* @p */
	worker((struct pair){2, 3});
}
