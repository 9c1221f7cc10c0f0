/* Two channels of one name, a shared variable, ends that are passed. */
int fifochannel(c, 2);
int lvchannel(latest);
static void speak(struct timedc_avtp *to, int v)
{
	pdu_send_now(to, &v);
}
task f(void)
{
	int fifochannel(c, 5);
	int v;
	cread(c, v); cwrite(c, v);
	cwrite(latest, v);
	cread(latest, v);
}
int main(void)
{
	struct timedc_avtp *a = pdu_create_standalone("speed", 1, net_fifo_chans, 1);
	struct timedc_avtp *b_du = pdu_create_standalone("b", 1, net_fifo_chans, 1);
	cinit(c, 0);
	f();
	cwrite(c, 1);
	speak(a, 1);
	speak(b_du, 2);
}
