/*
 * A task may not start itself, directly or through another.
 */
#include <cilktc.h>

task pong(void);

task itself()
{
	sdelay(1, ms);
	itself(); /* error: OB4008 */
}

task ping()
{
	pong(); /* error: OB4008 */
}

task pong()
{
	ping(); /* error: OB4008 */
}

int main(void)
{
	itself();
	ping();
}
