struct channel_attrs nc_channels[] = {
	{
		.dst = {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01},
		.stream_id = 7 / 0,
		.sc = SC_CLASS_A,
		.size = sizeof(struct unknown),
		.interval_ns = PERIOD,
		.name = "x",
	},
};
