/*
 * logger.h: the delay log. Columns of LOG, one line for each message sent or read:
 *
 *   stream_id,sz,seqnr,avtp_ns,cap_ptp_ns,send_ptp_ns,tx_ns,rx_ns,recv_ptp_ns
 *
 * and of LOG_d, one for each wait for capture + D:
 *
 *   ptp_target,cpu_target,cpu_actual
 *
 * All times are ns of the network clock; 0 is "not known at this end".
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <netchan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL when `logfile` is NULL or cannot be written. Allocates; starts the thread that writes. */
struct logc *log_create(const char *logfile);

/*
 * Add a line. They never wait, allocate nothing and may be called by any thread; when the disk is
 * so slow that 131,072 lines wait to be written, the line is left out and counted. NULL is allowed.
 */
void log_tx(struct logc *logc, struct avtpdu_cshdr *du, uint64_t cap_ptp_ns, uint64_t send_ptp_ns,
	    uint64_t tx_ns);
void log_rx(struct logc *logc, struct avtpdu_cshdr *du, uint64_t rx_ns, uint64_t recv_ptp_ns);
void log_wakeup_delay(struct logc *logc, uint64_t ptp_target_ns, uint64_t cpu_target_ns,
		      uint64_t cpu_actual_ns);

/* Forgets what was logged. */
void log_reset(struct logc *logc);

/* Moves what was logged to LOG-n and LOG_d-n, and continues with an empty log. */
void log_flush_and_rotate(struct logc *logc);

/* Writes the rest; what comes afterwards is ignored. NULL is allowed. */
void log_stop(struct logc *logc);

/* Writes the rest and frees it. NULL is allowed. log_destroy is the same. */
void log_close(struct logc *logc);
void log_destroy(struct logc *logc);

#ifdef __cplusplus
}
#endif
