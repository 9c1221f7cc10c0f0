struct timedc_avtp;
const int LOOPS = 1000000;
task writer() {
    struct timedc_avtp *mcast42_du = pdu_create_standalone("mcast42", 1, net_fifo_chans, 1);
    for (uint64_t i = 0; i < LOOPS; i++) {
        pdu_send_now_wait(mcast42_du, &i);
        sdelay(20);
    }
    nh_destroy_standalone();
}
