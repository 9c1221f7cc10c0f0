/* A program with a handler of its own: a timer, two channels, a message sent at an instant. */
#include <inttypes.h>
#include <netchan.h>
#include <stdio.h>

#include "manifest.h"

int main(int argc, char *argv[])
{
	if (argc != 2)
		return 1;
	struct nethandler *nh = nh_create_init(argv[1], 17, "handler_talker.csv");
	if (!nh)
		return 2;
	nh_set_verbose(nh, true);
	if (!nh_set_tx_prio(nh, SC_CLASS_A, 3) || nh_set_tx_prio(nh, SC_CLASS_A, 99))
		return 3;
	struct channel *sensor = chan_create_tx(nh, &nc_channels[IDX_42]);
	struct channel_attrs *attrs = NC_GET("mcast17");
	struct channel *value = chan_create_tx(nh, attrs);
	free(attrs);
	if (!sensor || !value || nh_get_num_tx(nh) != 2 || nh_set_tx_prio(nh, SC_CLASS_A, 2))
		return 4;
	nh_list_active_channels(nh);
	if (chan_ready_timedwait(sensor, 100 * NS_IN_MS) != 0)
		return 5;

	struct periodic_timer *pt = pt_init_from_attr(&nc_channels[IDX_17]);
	for (uint64_t i = 1; i <= 50; i++) {
		struct sensor s = {.val = 3 * i + 1, .seqnr = i};
		/* One is late: those after it are in phase with those before. */
		uint64_t wait = (i == 20 ? 9 : 2) * NS_IN_MS;
		uint64_t before = tai_get_ns(), at = before + wait, asked = at;
		/* What chan_update() takes, chan_send() sends. */
		if (chan_update(sensor, tai_to_avtp_ns(at), &s) != 0 ||
		    chan_send(sensor, &at) != sensor->payload_size)
			return 6;
		/* The capture time is of the clock that the program reads. */
		uint64_t now = tai_get_ns(), next = chan_time_to_tx(sensor);
		if (at < asked || at > now || next > 5 * NS_IN_MS) {
			fprintf(stderr, "round %d: asked %" PRIu64 ", captured %" PRIu64 ", now %" PRIu64
				", next in %" PRIu64 "\n", (int)i, asked, at, now, next);
			return 7;
		}
		if (chan_send_now(value, &i) != value->payload_size || pt_next_cycle(pt) != 0)
			return 8;
	}
	uint64_t end = -1;
	if (chan_delay(value, tai_get_ns() + NS_IN_MS) > 0 ||
	    chan_send_now_wait(value, &end) != value->payload_size)
		return 9;
	free(pt);
	nh_destroy(&nh);
	return nh ? 10 : 0;
}
