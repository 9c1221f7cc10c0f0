/* Measures the distance to what is ahead, 100 times a second. Here something comes nearer and goes
 * away again; replace measure() by the code that reads your lidar. */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "channels.h"

#define NEAREST_MM 400
#define FARTHEST_MM 4000
#define STEP_MM 20

static __attribute__((exectime(200, 500, us))) int64_t measure(int64_t round)
{
	int64_t half = (FARTHEST_MM - NEAREST_MM) / STEP_MM;
	int64_t at = round % (2 * half);

	return FARTHEST_MM - STEP_MM * (at < half ? at : 2 * half - at);
}

task scan()
{
	NETFIFO_TX(distance);
	for (int64_t round = 0;; round++) {
		int64_t mm = measure(round);
		WRITE(distance, &mm);
		fdelay(10, ms);
	}
}

int main(void)
{
	scan();
}
