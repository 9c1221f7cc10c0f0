/* Functions with something in them are looked into, with what they are passed. */
int fifochannel(c, 3);
static void wait(int n)
{
	critical {
		prepare();
	}
	fdelay(n, ms);
}
static void send(int value)
{
	cwrite(c, value);
}
static __attribute__((exectime(1, 2, ms))) int sense(void)
{
	return device();
}
task f(unsigned by)
{
	while (1) {
		int v = sense();
		send(v);
		plain(v);
		fdelay(10, ms);
		wait(by + 1);
		wait(7);
	}
}
int main(void)
{
	f(4);
	f(5);
}
