/*
 * own.c: Onbeat's own calls, aborted one after the other while another task makes the same. What
 * waits for a message waits for one that does not come, or comes from this program.
 */
#include <cilktc.h>
#include <timedc_avtp.h>
#include <netchan_standalone.h>
#include <netchan_utils.h>
#include <ptp_getclock.h>
#include <stdlib.h>

struct net_fifo net_fifo_chans[] = {
	{
		.dst = {0x01, 0x00, 0x5e, 0x01, 0x01, 0x01},
		.stream_id = 1,
		.class = CLASS_A,
		.size = 8,
		.freq = 4000,
		.name = "to",
	},
	{
		.dst = {0x01, 0x00, 0x5e, 0x01, 0x01, 0x02},
		.stream_id = 2,
		.class = CLASS_A,
		.size = 8,
		.freq = 4000,
		.name = "from",
	},
};

#define CALLS 16
static struct channel *to_end, *from_end;

static void call(int which)
{
	uint64_t value = 1;

	switch (which) {
	case 0: chan_send_now(to_end, &value); break;
	case 1: chan_update(to_end, 0, &value); break;
	case 2: chan_send(to_end, &value); break;
	case 3: chan_valid(to_end); break;
	case 4: chan_ready(from_end); break;
	case 5: chan_ready_timedwait(from_end, 1000); break;
	case 6: chan_time_to_tx(to_end); break;
	case 7: tai_get_ns(); break;
	case 8: real_get_ns(); break;
	case 9: pdu_update(to_end, 0, &value); break;
	case 10: pdu_send(to_end); break;
	case 11: pdu_send_now(to_end, &value); break;
	case 12: free(nf_get_chan("to", net_fifo_chans, ARRAY_SIZE(net_fifo_chans))); break;
	case 13: chan_dump_state(to_end); break;
	case 14: chan_read(from_end, &value); break;
	case 15: pdu_read(from_end, &value); break;
	}
}

task victim()
{
	NETFIFO_TX(to);
	NETFIFO_RX(from);
	to_end = to_du;
	from_end = from_du;
	for (int round = 0;; round++) {
		for (;;)
			call(round % CALLS);
		fdelay(60, us);
	}
}

/* Reads too: what is for the victim may go to this one. */
task other()
{
	sdelay(5, ms);
	for (int round = 0;; round++) {
		call(round % 14);
		sdelay(100, us);
	}
}

int main(void)
{
	victim();
	other();
}
