/*
 * void main is a main; the program's status is 0 however it returns.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 10ms main release @p, end
 */
#include <cilktc.h>

void main()
{
	sdelay(10, ms); /* @p */
	if (timedc_aborted() == 0)
		return;
	sdelay(10, ms);
}
