/*
 * Tasks may be declared before they are defined, and called by whoever sees the declaration.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 6ms worker release @p, end
 */
#include <cilktc.h>

task worker(int span);

int main(void)
{
	worker(6);
}

task worker(int span)
{
	fdelay(span, ms); /* @p */
}
