/* Filters poses, makes commands of them, and reports now and then. Its three tasks share one
 * processor: the description says `cores = 1`. */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "manifest.h"

int64_t fifochannel(filtered, 4);
int64_t lvchannel(latest);

static __attribute__((exectime(300, 500, us))) int64_t filter(int64_t pose)
{
	return pose / 2;
}

static __attribute__((exectime(1000, 1500, us))) int64_t control(int64_t state)
{
	return -state;
}

static __attribute__((exectime(2, 3, ms))) int64_t summary(int64_t state)
{
	return state;
}

task receive()
{
	spriority(30);
	NETFIFO_RX(pose);
	while (1) {
		int64_t pose, state;
		READ(pose, &pose);
		state = filter(pose);
		cwrite(filtered, state);
	}
}

task command()
{
	spriority(20);
	NETFIFO_TX(command);
	while (1) {
		int64_t state, command;
		cread(filtered, state);
		command = control(state);
		WRITE(command, &command);
		cwrite(latest, state);
	}
}

task report()
{
	spriority(10);
	NETFIFO_TX(status);
	while (1) {
		int64_t state, status;
		cread(latest, state);
		status = summary(state);
		WRITE(status, &status);
		hdelay(100, ms);
	}
}

int main(void)
{
	receive();
	command();
	report();
}
