/*
 * A firm segment ends at the deadline; control continues at the point, which waits for its release.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 12ms worker abort @p
 * trace: 20ms worker release @p
 * trace: 32ms worker abort @p
 * trace: 40ms worker release @p, end
 */
#include <cilktc.h>

__attribute__((exectime(5, ms))) static void work(void)
{
}

task worker()
{
	for (int i = 0; i < 2; i++) {
		work();
		work();
		work();
		ftp(20, 12, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
