/* Samples a pose 100 times a second. */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "manifest.h"

static __attribute__((exectime(200, 400, us))) int64_t sense(int64_t round)
{
	return round * round % 1000;
}

task sample()
{
	NETFIFO_TX(pose);
	for (int64_t round = 0;; round++) {
		int64_t value = sense(round);
		WRITE(pose, &value);
		fdelay(10, ms);
	}
}

int main(void)
{
	sample();
}
