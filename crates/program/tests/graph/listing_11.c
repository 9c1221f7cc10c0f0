#include <stdio.h>
#include <cilkktc.h>
#include <timedc_avtp.h>
#include "manifest.h"
enum { LOOPS = 1000 };
static bool running = false;
void sighandler(int signum)
{
    printf("%s(): Got signal (%d), closing\n",
           __func__, signum);
    fflush(stdout);
    running = false;
}

task writer()
{
    printf("%s(): getting ready\n", __func__);
    struct timedc_avtp *mcast42_du = pdu_create_standalone("mcast42", 1, net_fifo_chans, 1);

    for (uint64_t i = 0; i < LOOPS && running; i++)
    {
        pdu_send_now_wait(mcast42_du, &i);
        if (!(i%100))
            printf("%lu: written\n", i);
        sdelay(20, ms);
    }

    uint64_t stop = -1;
    pdu_send_now_wait(mcast42_du, &stop);
    printf("Magic stop marker written\n");

    nh_destroy_standalone();
    return NULL;
}

void main()
{
    nf_set_nic("eth0");
    printf("Run for %d\n", LOOPS);

    printf("Using SRP\n");
    nf_use_srp();
    nf_set_logfile("netfifo_talker_rt_srp.csv");
    nf_log_delay();

    running = true;
    signal(SIGINT, sighandler);
    writer();
}
