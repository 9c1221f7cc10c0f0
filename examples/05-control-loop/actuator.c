/* Acts on every command at the same distance from its capture. */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "manifest.h"

static __attribute__((exectime(50, 100, us))) void act(int64_t command)
{
	(void)command;
}

task drive()
{
	NETFIFO_RX(command);
	while (1) {
		int64_t command;
		READ_WAIT(command, &command);
		act(command);
	}
}

int main(void)
{
	drive();
}
