task sensor() { struct timedc_avtp *chan_du = pdu_create_standalone("chan", 1, chans, 1);
    int val;
    while(1) {
        val = sense();
        pdu_send_now(chan_du, &val);
        fdelay(10, ms);
    }
}
task processor() { struct timedc_avtp *chan_du = pdu_create_standalone("chan", 0, chans, 1);
    while(1) {
        int val;
        pdu_read_wait(chan_du, &val);
        process(val);
    }
}
