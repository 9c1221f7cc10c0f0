/* Limits the robot's speed by the distance to what is ahead. The four tasks share one processor:
 * the description says `cores = 1`. A higher number is a higher priority. */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "channels.h"

#define STOP_MM 500   /* nearer than this it stands */
#define CRUISE_MM_S 1500
#define ROUNDS 6      /* with 12 there is not always time for all */

int64_t fifochannel(distances, 8);
int64_t lvchannel(nearest);
int64_t lvchannel(cruise);

static __attribute__((exectime(100, 200, us))) int64_t filter(int64_t before, int64_t mm)
{
	return before ? (3 * before + mm) / 4 : mm;
}

static __attribute__((exectime(500, 1000, us))) int64_t limit(int64_t mm, int64_t wanted)
{
	int64_t most = mm < STOP_MM ? 0 : mm - STOP_MM;

	return wanted < most ? wanted : most;
}

static __attribute__((exectime(6, 8, ms))) int64_t improve(int64_t speed)
{
	return (speed + CRUISE_MM_S) / 2;
}

static __attribute__((exectime(1, 2, ms))) int64_t describe(int64_t mm)
{
	return mm;
}

/* Takes each distance as it comes. */
task receive()
{
	int64_t filtered = 0;

	spriority(40);
	NETFIFO_RX(distance);
	while (1) {
		int64_t mm;
		READ(distance, &mm);
		filtered = filter(filtered, mm);
		cwrite(distances, filtered);
	}
}

/* Answers each distance with a speed. */
task brake()
{
	spriority(30);
	NETFIFO_TX(speed);
	while (1) {
		int64_t mm, wanted, speed;
		cread(distances, mm);
		cread(cruise, wanted);
		speed = limit(mm, wanted);
		WRITE(speed, &speed);
		cwrite(nearest, mm);
	}
}

/* Reports twice a second. A soft timing point: a report may be late. */
task report()
{
	spriority(20);
	while (1) {
		int64_t mm;
		cread(nearest, mm);
		describe(mm);
		sdelay(500, ms);
	}
}

/* Searches for the best cruising speed, better with each round. A firm timing point: rounds that
 * are not done after 80 ms are aborted, and the best so far counts. */
task search()
{
	int64_t best = CRUISE_MM_S / 4;

	spriority(10);
	while (1) {
		for (int round = 0; round < ROUNDS; round++) {
			int64_t better = improve(best);
			critical {
				best = better;
			}
		}
		ftp(100, 80, ms);
		cwrite(cruise, best);
	}
}

int main(void)
{
	cinit(cruise, CRUISE_MM_S / 4);
	receive();
	brake();
	report();
	search();
}
