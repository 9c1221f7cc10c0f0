/*
 * An error in what a macro makes is shown where the macro is used.
 */
#include <cilktc.h>

#define WAIT(n) sdelay(n, ms)
#define WAIT_LESS(n) do { \
		WAIT(n - 100); \
	} while (0)

int main(void)
{
	WAIT(10);
	WAIT(-10); /* error: OB4002 */
	WAIT_LESS(99); /* error: OB4002 */
	return 0;
}
