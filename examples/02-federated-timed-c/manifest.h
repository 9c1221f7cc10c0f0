#pragma once
#define NIC "enp2s0.2"

#define LOOP_HZ 50
#define IT_MIN (50*60)
#define IT_HR (IT_MIN * 60)
#define LOOPS (5 * IT_HR)

#include <timedc_avtp.h>
struct net_fifo net_fifo_chans[] = {
    /* DEFAULT_MCAST */
    .dst = {0x01, 0x00, 0x5E,
           0x01, 0x11, 0x42},
    .stream_id = 42,
    .class = CLASS_A,
    .size = 8,
    .freq = 50,
    .name = "mcast42"
};
