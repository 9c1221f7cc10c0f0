/* The channels of the tests' programs, in the later spelling. */
#pragma once

#include <netchan.h>

struct sensor {
	uint64_t val;
	uint64_t seqnr;
};

#define LOAD_SIZE 1400

enum { IDX_42, IDX_17, IDX_18, IDX_LOAD, IDX_UNREAD };

struct channel_attrs nc_channels[] = {
	{
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x42},
		.stream_id = 42,
		.sc = SC_CLASS_A,
		.size = sizeof(struct sensor),
		.interval_ns = 5 * NS_IN_MS,
		.name = "mcast42",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x17},
		.stream_id = 17,
		.sc = SC_CLASS_A,
		.size = 8,
		.interval_ns = 10 * NS_IN_MS,
		.name = "mcast17",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x18},
		.stream_id = 18,
		.sc = SC_CLASS_B,
		.size = 8,
		.interval_ns = 10 * NS_IN_MS,
		.name = "mcast18",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x50},
		.stream_id = 50,
		.sc = SC_CLASS_A,
		.size = LOAD_SIZE,
		.interval_ns = 200 * NS_IN_US,
		.name = "load",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x51},
		.stream_id = 51,
		.sc = SC_CLASS_A,
		.size = LOAD_SIZE,
		.interval_ns = 200 * NS_IN_US,
		.name = "unread",
	},
};
