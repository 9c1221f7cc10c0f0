static bool running = false;
struct point { double x, y; };
struct net_fifo net_fifo_chans[] = {
	/* one row, without its braces */
	.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x42},
	.stream_id = 42,
	.class = CLASS_A,
	.size = 8,
	.freq = 50,
	.name = "mcast42"
};

task writer()
{
	struct channel *mcast42_du = pdu_create_standalone("mcast42", true, net_fifo_chans, 1);

	for (uint64_t i = 0; i < (50 * 60) && running; i++)
	{
		chan_send_now_wait(mcast42_du, &i);
		if (!(i%100))
			printf("%lu: written\n", i);
		sdelay(20, ms);
	}

	uint64_t stop = -1;
	chan_send_now_wait(mcast42_du, &stop);
	struct { char bytes[8]; } odd;
	chan_send_now_wait(mcast42_du, &odd);
	nh_destroy_standalone();
	return NULL;
}

int fifochannel(fifo);
task reader() {
	spolicy(FIFO_RM);
	int val;
	while (1) {
		cread(fifo, val);
		printf("fifo: %d\n", val);
	}
}

task counter() {
	spolicy(EDF);
	int w = 0;
	while(1) {
		cwrite(fifo, w);
		fdelay(100, ms);
		w++;
	}
}

void main()
{
	running = true;
	cinit(fifo, 0);
	writer();
	reader();
	counter();
}
