/* The channels of this example, for the programs and for the description. */
#pragma once
#include <timedc_avtp.h>

struct net_fifo net_fifo_chans[] = {
	{
		.dst = {0x01, 0x00, 0x5E, 0x05, 0x00, 0x01},
		.stream_id = 1,
		.class = CLASS_A,
		.size = 8,
		.freq = 100,
		.name = "pose",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x05, 0x00, 0x02},
		.stream_id = 2,
		.class = CLASS_A,
		.size = 8,
		.freq = 100,
		.name = "command",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x05, 0x00, 0x03},
		.stream_id = 3,
		.class = CLASS_B,
		.size = 8,
		.freq = 10,
		.name = "status",
	},
};
