/*
 * Listing 3 of Austad et al. 2023: `chan` is not bound.
 */
#include <cilktc.h>

int sense(void);
void process(int);

task sensor()
{
	while (1) {
		chan_write(sense()); /* error: OB4016 */
		fdelay(10, ms);
	}
}

task processor()
{
	while (1) {
		int val = chan_read(); /* error: OB4016 */
		process(val);
	}
}
