/* Registers have C's values or none. */
void w(void);
task f(void)
{
	unsigned u = 0;
	unsigned char byte = 255;
	int n = 5, volatile_one;
	volatile int v = 1;
	size_t count = sizeof(int) * 2;
	int array[7];
	static int s = 3;
	long big = 1L << 40;
	int address = 2;
	scanf("%d", &address);
	while (u - 1 < 3)
		sdelay(u++, ms);
	while (n-- > 0 && n != 3)
		sdelay(byte++, us);
	for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i += 2)
		sdelay(i, ms);
	if (v) sdelay(1, ms);
	if (s) sdelay(2, ms);
	if (address) sdelay(3, ms);
	if (big >> 39 == 2) sdelay(4, ms);
	if (-1 < u) sdelay(5, ms);
	if (n = 3) sdelay(6, ms);
	while (count --> 0) sdelay(7, ms);
	do w(); while (n);
	if ((char)n > 'a') sdelay(8, ms);
}
