/*
 * Storage classes and qualifiers of locals change nothing, and statics are shared by all calls.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 8ms worker abort @p
 * trace: 10ms worker release @p
 * trace: 18ms worker abort @p
 * trace: 20ms worker release @p, end
 * output: 3 3 3
 * output: 6 3 3
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static void work(void) { }

task worker()
{
	for (auto int round = 0; round < 2; round++) {
		static int all;
		volatile int here = 0;
		register unsigned long int fast = 0;
		const int limit = 100;

		for (register int i = 0; i < limit; i++) {
			all++, here++, fast++;
			work();
		}
		ftp(10, 8, ms); /* @p */
		printf("%d %d %lu\n", all, here, fast);
	}
}

int main(void)
{
	worker();
}
