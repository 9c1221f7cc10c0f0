/*
 * -I finds headers that define macros with timing points.
 * duration: 1s
 * cc: -Iwith -DSPAN=4
 * trace: 0 main start, arrive @p
 * trace: 8ms main release @p, end
 */
#include <cilktc.h>
#include <pace.h>

int main(void)
{
	PACE(SPAN); /* @p */
	return 0;
}
