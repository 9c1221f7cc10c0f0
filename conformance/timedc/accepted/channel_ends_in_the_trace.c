/*
 * Control comes to a channel end before anything happens there: each end has the line where it
 * stands or where its macro is used, the second one in a line its number. An lvchannel has none.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 writer start, reach channel_ends_in_the_trace.h:@h, write lamp
 * trace: 0 writer reach @two, write a, reach @two.2, write b, reach @full, full b, arrive @p
 * trace: 10ms writer release @p, write level, reach @macro, write a
 * trace: 10ms writer reach @condition.2, write lamp, arrive @q
 * trace: 20ms writer release @q, end
 * trace: 0 reader start, arrive @r
 * trace: 5ms reader release @r, reach @first, read a, reach @first
 * trace: 10ms reader read a, arrive @s
 * trace: 12ms reader release @s, end
 * output: 1
 * output: 2
 */
#include <cilktc.h>
#include "with/channel_ends_in_the_trace.h"

#define PUT(v) cwrite(a, v)

int fifochannel(a);
int fifochannel(b, 1);
int lvchannel(level);

task writer()
{
	int never = sizeof(cwrite(a, 9)) == 0;

	light(7);
	cwrite(a, 1); cwrite(b, 1); /* @two */
	if (cwrite(b, 2) != 1) /* @full */
		never = 1;
	sdelay(10, ms); /* @p */
	cwrite(level, 4);
	PUT(2); /* @macro */
	if (never && cwrite(a, 3) == 0 || cwrite(lamp, 3) == 0) /* @condition */
		sdelay(10, ms); /* @q */
}

task reader()
{
	int got;

	sdelay(5, ms); /* @r */
	for (int i = 0; i < 2; i++) {
		cread(a, got); /* @first */
		printf("%d\n", got);
	}
	sdelay(7, ms); /* @s */
}

int main(void)
{
	writer();
	reader();
}
