/* Both ends of a channel on one handler, in the order of the argument. What is sent is read if the
 * talker was first. */
#include <netchan.h>

int main(int argc, char **argv)
{
	struct channel_attrs attrs = {
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x01, 43},
		.stream_id = 43,
		.sc = SC_CLASS_A,
		.size = sizeof(uint64_t),
		.interval_ns = NS_IN_MS,
	};
	bool reader_first = argc > 1 && strcmp(argv[1], "rx-tx") == 0;
	struct nethandler *nh = nh_create_init("eth0", 4, NULL);
	struct channel *rx = reader_first ? chan_create_rx(nh, &attrs) : NULL;
	struct channel *tx = chan_create_tx(nh, &attrs);
	if (!reader_first)
		rx = chan_create_rx(nh, &attrs);
	uint64_t sent = 7, got = 0;
	if (!rx || chan_send_now(tx, &sent) != (int)sizeof(sent))
		return 1;
	if (!reader_first && (chan_read(rx, &got) != (int)sizeof(got) || got != sent))
		return 1;
	nh_destroy(&nh);
	return 0;
}
