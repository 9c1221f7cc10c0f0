#include "manifest.h"
task reader() {
    NETFIFO_RX(mcast42);
    uint64_t d = 0;
    while (1) {
        READ_WAIT(mcast42, &d);
        /* use d */
    }
    CLEANUP();
}
