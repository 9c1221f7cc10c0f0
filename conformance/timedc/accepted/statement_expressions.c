/*
 * Statement expressions, also with soft points and channels in them.
 * duration: 1s
 * trace: 0 main start, write c, read c, arrive @a
 * trace: 3ms main release @a, arrive @b
 * trace: 10ms main release @b, end
 * output: 7
 */
#include <cilktc.h>

int fifochannel(c);

#define TAKE(c) ({ int taken; cread(c, taken); taken; })
#define MAX(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })

int main(void)
{
	cwrite(c, 7);
	int got = TAKE(c);
	int span = ({ sdelay(3, ms); got; }); /* @a */

	sdelay(MAX(span, 2), ms); /* @b */
	printf("%d\n", span);
	return 0;
}
