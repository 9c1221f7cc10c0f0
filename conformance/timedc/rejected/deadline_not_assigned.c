/*
 * So it is with a deadline and with firm points.
 */
#include <cilktc.h>

task worker()
{
	int deadline;

	ftp(10, deadline, ms); /* error: OB4004 */
	deadline = 5;
	ftp(10, deadline, ms);
}

int main(void)
{
	worker();
}
