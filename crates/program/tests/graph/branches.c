/* Registers decide; what only computes or prints is code. */
enum mode { SLOW = 2, FAST };
int fifochannel(out);
task modes(int first)
{
	enum mode mode = SLOW;
	int printed = 0, n = first;
	for (int i = 0; i < 3; i++)
		sdelay(i + 1, ms);
	while (1) {
		printed++;
		printf("%d\n", printed);
		if (n > 3 && mode == FAST)
			cwrite(out, 1);
		else
			n += 2;
		switch (mode) {
		case SLOW:
			sdelay(20, ms);
			mode = FAST;
			break;
		case FAST:
			sdelay(5, ms);
			mode = SLOW;
			break;
		}
		if (sense() || !printed)
			sdelay(n ? 1 : 2, ms);
		for (int k = 0; k < 100; k++)
			compute(k);
	}
}
int main(void)
{
	modes(2);
}
