void work(int n);
int late(void);
int fifochannel(samples);
static int fifochannel(small, 8), fifochannel(other);
int lvchannel mode;

task sensor()
{
	for (int i = 0;; i++) {
		cwrite(samples, i);
		fdelay(10, ms);
	}
}

static task printer(int n, char *names[], int (*f)(int), double m[][4])
{
	int value;

	while (n > 0) {
		cread(samples, value);
		if (value) work(value); else continue;
		if (value > 3)
			htp(20, value, us);
		else if (value)
			sdelay(20, -3);
		else
			return;
	}
	work(f(1) + (m != NULL) + (names != NULL));
}

task old(a, b) int a; char b[4];
{
	spolicy(FIFO_RM);
	aperiodic(50, ms);
	spriority(a + b[0]);
	stp(10, infty, "us");
	critical { work(gettime(ms)); }
	ftp(10, 5, sec);
}

void main()
{
	sensor();
	printer(1, NULL, NULL, NULL);
	old(1, "abc");
	if (late())
		return;
}
