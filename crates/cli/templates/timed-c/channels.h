/* The channels of the robot, for the programs and for the description. */
#pragma once
#include <timedc_avtp.h>

struct net_fifo net_fifo_chans[] = {
	{
		.dst = {0x01, 0x00, 0x5E, 0x04, 0x00, 0x01},
		.stream_id = 1,
		.class = CLASS_A,
		.size = 8,
		.freq = 100,
		.name = "distance",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x04, 0x00, 0x02},
		.stream_id = 2,
		.class = CLASS_A,
		.size = 8,
		.freq = 100,
		.name = "speed",
	},
};
