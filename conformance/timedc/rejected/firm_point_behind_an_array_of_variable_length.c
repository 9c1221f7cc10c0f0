/*
 * An abort cannot jump over the declaration of an array of variable length.
 */
#include <cilktc.h>

static void work(int *at)
{
	at[0] = 1;
}

task worker(int n)
{
	puts("");
	int at[n];
	work(at);
	fdelay(10, ms); /* error: OB4012 */
}

int main(void)
{
	worker(3);
}
