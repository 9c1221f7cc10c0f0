#include <stdint.h>

struct sample {
	uint32_t count;
	double at;
};

struct channel_attrs nc_channels[] = {
	{
		.dst = {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01},
		.stream_id = 7,
		.sc = SC_CLASS_A,
		.size = 8,
		.interval_ns = 20 * NS_IN_MS,
		.name = "x",
	},
};
