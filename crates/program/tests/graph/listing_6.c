#include "manifest.h"
task reader() {
    struct timedc_avtp *mcast42_du = pdu_create_standalone("mcast42", 0, net_fifo_chans, 1);
    uint64_t d = 0;
    while (1) {
        pdu_read_wait(mcast42_du, &d);
        /* use d */
    }
    nh_destroy_standalone();
}
