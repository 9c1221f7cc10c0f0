void work(int n);
int check(int n);
int choose(void);

task loops(int n)
{
	int i = 0;

	while (fdelay(10, ms) == 0)
		work(1);
	while (check(2), fdelay(11, ms) > 0) {
		if (i)
			continue;
		work(2);
	}
	do {
		if (i++)
			continue;
		work(3);
	} while (check(3), fdelay(12, ms));
	do work(4); while (fdelay(13, ms));
	for (i = 0; fdelay(14, ms) == 0; i++)
		work(5);
	for (i = 0, fdelay(15, ms); fdelay(16, ms) < 3; i++, fdelay(17, ms)) {
		if (i)
			continue;
		work(6);
	}
	if (check(1), fdelay(18, ms))
		work(7);
	else if (fdelay(19, ms))
		work(8);
	switch (fdelay(20, ms)) {
	case 0:
	case 1: fdelay(21, ms); work(9); break;
	default: work(10);
	}
	long late = fdelay(22, ms);
	if (late)
again:		late = fdelay(23, ms);
	if (late > 3)
		goto again;
	work(11), fdelay(24, ms), work(12);
	if (choose())
		skipdelay;
	work(13);
	fdelay(n, ms);
	return work(14), (void *)fdelay(25, ms);
}

task branches(void)
{
	register int n = 5;

	for (;;) {
		switch (n) {
		case 1: work(1); fdelay(10, ms); break;
		case 2: work(2); fdelay(20, ms); break;
		default: work(3); sdelay(30, ms);
		}
		n++;
		work(n);
		fdelay(n, ms);
	}
}

int main(void)
{
	loops(1);
	branches();
	return 0;
}
