/*
 * The channels of examples/01-two-hosts, in the first generation's spelling
 * (Austad et al. 2023, listing 4). Onbeat reads this file, see `manifest` in
 * system.toml, so that the programs and the description cannot disagree.
 *
 * Include the header that declares struct net_fifo before this one.
 */
#pragma once

struct net_fifo net_fifo_chans[] = {
	/* A counter, 50 times a second, to whoever listens to the group. */
	.dst       = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x42},
	.stream_id = 42,
	.class     = CLASS_A,
	.size      = 8,
	.freq      = 50,
	.name      = "mcast42"
};
