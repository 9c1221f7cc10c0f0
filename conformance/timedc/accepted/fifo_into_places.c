/*
 * cread may read into an element, a member or what a pointer points to; cwrite may write any
 * expression.
 * duration: 1s
 * trace: 0 main start
 * trace: 0 main write c, write c, write c, read c, read c, read c, end
 * output: 3 20 -1
 */
#include <cilktc.h>

static int fifochannel(c);

struct box { int in; };

int main(void)
{
	int at[2] = {0, 0}, target, *p = &target;
	struct box box, *q = &box;

	cwrite(c, 1 + 2);
	cwrite(c, at[0] ? 10 : 20);
	cwrite(c, (at[1]++, -at[1]));
	cread(c, at[0]);
	cread(c, q->in);
	cread(c, *p);
	printf("%d %d %d\n", at[0], box.in, target);
	return 0;
}
