/*
 * What is sent and read must have the size that the manifest says.
 */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "with/manifest.h"

task writer()
{
	NETFIFO_TX(mcast42);
	uint32_t i = 0;

	WRITE_WAIT(mcast42, &i); /* error: OB4011 */
	sdelay(20, ms);
	CLEANUP();
}

int main(void)
{
	writer();
}
