/*
 * A pair of macros may open and close a loop, the second with the point.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 8ms worker abort @p
 * trace: 10ms worker release @p
 * trace: 18ms worker abort @p
 * trace: 20ms worker release @p, end
 */
#include <cilktc.h>

#define BEGIN(n) for (int left = (n); left > 0; left--) {
#define END(period, deadline) ftp(period, deadline, ms); }

__attribute__((exectime(30, ms))) static void work(void) { }

task worker()
{
	BEGIN(2)
		work();
	END(10, 8) /* @p */
}

int main(void)
{
	worker();
}
