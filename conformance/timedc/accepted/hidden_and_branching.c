/*
 * Guards in nested scopes, with the same names, early returns and several ways to the point.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 6ms worker abort @p
 * trace: 10ms worker release @p
 * trace: 13ms worker arrive @p
 * trace: 20ms worker release @p
 * trace: 26ms worker abort @p
 * trace: 30ms worker release @p
 * trace: 33ms worker end
 * output: 1
 * output: 2
 * output: 3
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static int work(int n)
{
	return n;
}

task worker()
{
	const int limit = 6;
	int round = 0;

	for (;;) {
		if (round == 3) {
			int limit = 1;

			work(limit);
			return NULL;
		}
		if (round++ % 2 == 0) {
			int limit = 100;

			while (limit-- > 0) {
				if (work(limit) < 0)
					return NULL;
			}
		} else {
			work(1);
		}
		ftp(10, limit, ms); /* @p */
		printf("%d\n", round);
	}
}

int main(void)
{
	worker();
}
