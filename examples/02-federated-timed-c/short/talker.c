#include 'manifest.h'
const int LOOPS = 1000000;
task writer() {
    NETFIFO_TX(mcast42);
    for (uint64_t i = 0; i < LOOPS; i++) {
        WRITE_WAIT(mcast42, &i);
        sdelay(20);
    }
    CLEANUP();
}
