#ifndef HEADER_WITH_TASKS_H
#define HEADER_WITH_TASKS_H

int lvchannel(lamp);

static inline void rest(int span)
{
	sdelay(span, ms); /* @i */
}

task blinker()
{
	for (int i = 0; i < 2; i++)
		fdelay(25, ms); /* @b */
}

#endif
