#include <stdio.h>
#include <cilkktc.h>
#include <timedc_avtp.h>
#include "manifest.h"

task reader()
{
    NETFIFO_RX(mcast42);
    /* Default, terminal value, unless changed by
     * remote, will terminate loop. */
    uint64_t d = -1;
    while (1) {
        READ_WAIT(mcast42, &d);
        if (!(d%100))
            printf("Counter received! -> %lu\n", d);

        if (d == -1) {
            printf("Magic terminator, stopping\n");
            break;
        }
    }
    CLEANUP();
    return NULL;
}

void main()
{
    printf("Using %s\n", NIC);
    nf_set_nic(NIC);
    nf_use_srp();
    nf_set_logfile("netfifo_listener_rt_srp.csv");
    nf_log_delay();
    reader();
}
