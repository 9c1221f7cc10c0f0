/*
 * A soft point aborts nothing: critical before it has no meaning.
 */
#include <cilktc.h>

task worker()
{
	while (1) {
		critical { /* error: OB4005 */
			puts("");
		}
		sdelay(10, ms);
		puts("");
		fdelay(10, ms);
	}
}

int main(void)
{
	worker();
}
