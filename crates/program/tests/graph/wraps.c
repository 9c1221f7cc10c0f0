/* Unsigned types wrap; shifts by variables; cases of several values; prototypes in blocks. */
static void rest(int n)
{
	sdelay(n, ms);
}

task f(void)
{
	void rest(int n);
	unsigned char left = 3;
	unsigned int seen = 0;

	while (left--)
		sdelay(1, ms);
	for (int i = 4; i-- > 0;)
		sdelay(1 << i % 3, ms);
	if (seen - 1 > 5)
		rest(2);
	switch (left) {
	case 0 ... 254:
		sdelay(3, ms);
		break;
	case 255:
		sdelay(4, ms);
	}
}

int main(void)
{
	f();
}
