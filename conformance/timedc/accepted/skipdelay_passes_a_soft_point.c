/*
 * skipdelay goes to the next point, which does not wait; its instant is the next origin.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 10ms main release @p
 * trace: 13ms main arrive @p, skip @p, arrive @p
 * trace: 23ms main release @p, end
 * output: 0 0
 * output: 1 0
 * output: 2 0
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static void work(void) { }

int main(void)
{
	for (int i = 0; i < 3; i++) {
		long late;

		if (i == 1) {
			work();
			skipdelay;
		}
		late = sdelay(10, ms); /* @p */
		printf("%d %ld\n", i, late);
	}
	return 0;
}
