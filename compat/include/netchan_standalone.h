/*
 * netchan_standalone.h: one handler for the whole program, hidden behind macros.
 *
 * The macros declare `NAME_du` for the row NAME of the manifest `nc_channels`.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <netchan.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NETCHAN_RX(x) \
	struct channel *x##_du = \
		chan_create_standalone(#x, false, nc_channels, ARRAY_SIZE(nc_channels))
#define NETCHAN_TX(x) \
	struct channel *x##_du = \
		chan_create_standalone(#x, true, nc_channels, ARRAY_SIZE(nc_channels))

#define WRITE(x, v) chan_send_now(x##_du, v)
#define WRITE_WAIT(x, v) chan_send_now_wait(x##_du, v)
#define READ(x, v) chan_read(x##_du, v)
#define READ_WAIT(x, v) chan_read_wait(x##_du, v)

#define CLEANUP() nh_destroy_standalone()

/* What the handler will be made with; without effect once it is made. */
int nc_set_nic(const char *nic);
void nc_set_hmap_size(int sz);
void nc_use_srp(void);
void nc_use_ftrace(void);
void nc_breakval(int break_us);
void nc_verbose(void);
void nc_set_logfile(const char *logfile);
void nc_tx_sock_prio(int prio, enum stream_class sc);

/*
 * Leaves the processors' idle states alone, of all handlers; without effect once a channel is open.
 * Otherwise the program holds /dev/cpu_dma_latency at 0 while it has a channel open, if it may.
 */
void nc_keep_cstate(void);

/* For programs of earlier versions. Wake-ups are in LOG_d whenever there is a log. */
void nc_log_delay(void);
/* No terminal is written to. */
void nc_use_termtag(const char *devpath);

/*
 * The end of the row `name`, with the handler made if there is none. NULL, and a line that says
 * why, when any row of the manifest is wrong or the end cannot be made.
 */
struct channel *chan_create_standalone(const char *name, bool tx, struct channel_attrs *attrs,
				       int arr_size);

/* 0 when there is a handler now, else -1. */
int nh_create_init_standalone(void);
void nh_destroy_standalone(void);

#ifdef __cplusplus
}
#endif
