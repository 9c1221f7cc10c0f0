/*
 * A network channel must be in the manifest.
 */
#include <cilktc.h>
#include <timedc_avtp.h>
#include "with/manifest.h"

task writer()
{
	NETFIFO_TX(mcast43); /* error: OB4010 */
	uint64_t i = 0;

	WRITE(mcast43, &i);
	sdelay(20, ms);
}

int main(void)
{
	writer();
}
