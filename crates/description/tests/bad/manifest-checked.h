struct channel_attrs nc_channels[] = {
	{
		.dst = {0x02, 0, 0, 0, 0, 0x99},
		.stream_id = 7,
		.sc = SC_CLASS_A,
		.size = 70000,
		.interval_ns = 0,
		.name = "x",
	},
};
