/*
 * A soft point ends a segment as a firm one does: only the code behind it is guarded.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 30ms worker arrive @s 20ms, release @s 20ms
 * trace: 40ms worker abort @f, release @f
 * trace: 70ms worker arrive @s 20ms, release @s 20ms
 * trace: 80ms worker abort @f, release @f, end
 */
#include <cilktc.h>

__attribute__((exectime(30, ms))) static void work(void) { }

task worker()
{
	for (int i = 0; i < 2; i++) {
		work();
		sdelay(10, ms); /* @s */
		work();
		fdelay(10, ms); /* @f */
	}
}

int main(void)
{
	worker();
}
