#include <stdlib.h>
#include <cilktc.h>

int64_t fifochannel(c, 1);

task w(void);
task w(void)
{
	int64_t v = 0;

	while (1) {
		if (getenv("COINS"))
			cwrite(c, v);
		if (getenv("COINS"))
			sdelay(4000, us);
		cwrite(c, v);
		fdelay(10000, us);
	}
}

task r(void);
task r(void)
{
	int64_t v = 0;

	for (int i = 0; i < 3; i++) {
		sdelay(3000, us);
		cread(c, v);
	}
}

int main(void)
{
	w();
	r();
	return 0;
}
