#include <cilktc.h>
#include "several_files.h"

int fifochannel(numbers);

task maker(int count)
{
	for (int i = 0; i < count; i++) {
		cwrite(numbers, i);
		fdelay(10, ms); /* @m */
	}
}

void pause_shortly(void)
{
	sdelay(1, ms); /* @p */
}
