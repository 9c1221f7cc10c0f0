/*
 * A manifest without its row's braces, as in Listings 4 and 13, is one row.
 */
#include <cilktc.h>
#include <timedc_avtp.h>

struct net_fifo net_fifo_chans[] = {
	/* DEFAULT_MCAST */
	.dst       = {0x01, 0x00, 0x5E, /* warning: OB4105 */
		      0x01, 0x11, 0x42},
	.stream_id = 42,
	.class     = CLASS_A,
	.size      = 8,
	.freq      = 50,
	.name      = "mcast42"
};

task writer()
{
	NETFIFO_TX(mcast42);
	for (uint64_t i = 0; i < 10; i++) {
		WRITE_WAIT(mcast42, &i);
		sdelay(20, ms);
	}
	CLEANUP();
}

int main(void)
{
	writer();
}
