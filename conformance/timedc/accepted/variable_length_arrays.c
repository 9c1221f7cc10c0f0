/*
 * Arrays of variable length may be used where no abort jumps over their declaration.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 6ms main release @p, end
 * output: 6
 */
#include <cilktc.h>

static int sum(int n)
{
	int at[n], total = 0;

	for (int i = 0; i < n; i++)
		total += at[i] = i;
	return total;
}

int main(void)
{
	int n = sum(4);
	char text[n + 1];

	snprintf(text, sizeof text, "%d", n);
	sdelay(atoi(text), ms); /* @p */
	puts(text);
	return 0;
}
