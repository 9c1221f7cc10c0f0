/*
 * The next point of a skipdelay may stand before it in the text.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p
 * trace: 12ms worker arrive @p, skip @p
 * trace: 14ms worker arrive @p, skip @p, end
 */
#include <cilktc.h>

__attribute__((exectime(2, ms))) static void work(void) { }

task worker()
{
	int n = 0;

	while (1) {
		fdelay(10, ms); /* @p */
		if (++n == 3)
			return NULL;
		work();
		skipdelay;
	}
}

int main(void)
{
	worker();
}
