#include "with/listing_3.h"
task sensor() {
    int val;
    while(1) {
        val = sense();
        chan_write(val);
        fdelay(10, ms);
    }
}

task processor() {
    while(1) {
        int val = chan_read();
        process(val);
    }
}
/*
 * Listing 3 of Austad et al. 2023 over a fifochannel has the instants of its Table 1: the sensor
 * writes at 0, 10, 20 and is released at 10, 20, 30; the processor's reads are done at 0, 10, 20.
 * duration: 35ms
 * trace: 0 main start, end
 * trace: 0 sensor start, write channel, arrive 7
 * trace: 10ms..30ms/10ms sensor release 7, write channel, arrive 7
 * trace: 0 processor start
 * trace: 0..30ms/10ms processor read channel
 * output: 1 2 3 4 
 */
int main(void)
{
	sensor();
	processor();
}
