task reader()
{
    struct timedc_avtp *mcast42_du = pdu_create_standalone("mcast42", 0, net_fifo_chans, 1);
    uint64_t d = -1;
    while (1) {
        pdu_read_wait(mcast42_du, &d);
        if (!(d%100))
            printf("Counter received! -> %lu\n", d);

        if (d == -1) {
            printf("Magic terminator, stopping\n");
            break;
        }
    }
    nh_destroy_standalone();
    return NULL;
}
void main()
{
    nf_use_srp();
    reader();
}
