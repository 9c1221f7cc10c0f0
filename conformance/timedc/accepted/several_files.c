/*
 * Tasks, channels and functions with points may be in several files, compiled together.
 * duration: 1s
 * files: with/several_files_2.c
 * trace: 0 main start, end
 * trace: 0 maker start, write numbers, arrive @m
 * trace: 10ms maker release @m, write numbers, arrive @m
 * trace: 20ms maker release @m, end
 * trace: 0 taker start, read numbers, arrive @t
 * trace: 3ms taker release @t
 * trace: 10ms taker read numbers, arrive @t 4ms, release @t 4ms, arrive @p
 * trace: 11ms taker release @p, end
 * output: 0
 * output: 1
 */
#include <cilktc.h>
#include "with/several_files.h"

task taker()
{
	int got;

	for (int i = 0; i < 2; i++) {
		cread(numbers, got);
		printf("%d\n", got);
		sdelay(3, ms); /* @t */
	}
	pause_shortly();
}

int main(void)
{
	maker(2);
	taker();
}
