/*
 * A blocking READ before a firm point may be aborted each time.
 */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "with/manifest.h"

task reader()
{
	NETFIFO_RX(mcast42);
	uint64_t value;

	while (1) {
		READ(mcast42, &value); /* warning: OB4103 */
		fdelay(20, ms);
	}
}

int main(void)
{
	reader();
}
