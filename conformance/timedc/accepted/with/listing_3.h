#include <cilktc.h>

int fifochannel(channel);

#define chan_write(value) cwrite(channel, value)
#define chan_read() ({ int timely; cread(channel, timely); timely; })

static int sense(void)
{
	static int n;

	return ++n;
}

static void process(int value)
{
	printf("%d ", value);
	fflush(stdout);
}
