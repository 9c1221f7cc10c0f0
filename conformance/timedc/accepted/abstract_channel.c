/*
 * Listing 3 of Austad et al. 2023 as it is printed: `chan` is abstract, and a fifochannel here.
 * duration: 35ms
 * cc: --bind chan=fifo:2
 * trace: 0 main start, end
 * trace: 0 sensor start, reach @w, write chan, arrive @p
 * trace: 10ms..30ms/10ms sensor release @p, reach @w, write chan, arrive @p
 * trace: 0 processor start, reach @r, read chan, reach @r
 * trace: 10ms..30ms/10ms processor read chan, reach @r
 * output: 1 2 3 4
 */
#include <stdio.h>

int sense(void);
void process(int value);

task sensor() {
    int val;
    while(1) {
        val = sense();
        chan_write(val); /* @w */
        fdelay(10, ms); /* @p */
    }
}

task processor() {
    while(1) {
        int val = chan_read(); /* @r */
        process(val);
    }
}

int sense(void)
{
	static int n;

	return ++n;
}

void process(int value)
{
	printf(value < 4 ? "%d " : "%d\n", value);
}

int main(void)
{
	sensor();
	processor();
}
