/*
 * timedc_avtp.h: the first generation's interface (Austad et al. 2023, appendix A), on Onbeat.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <netchan_standalone.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AVTP_SUBTYPE_TIMEDC AVTP_SUBTYPE_NETCHAN
#define DEFAULT_NIC "eth0"
#define DEFAULT_MAC DEFAULT_MCAST
#define FREQ_TO_MS(x) (1000 / (x))

/* A row of the manifest. `class` is no name in C++: there it is `sc`, as in later versions. */
struct net_fifo {
	uint8_t dst[ETH_ALEN];
	uint64_t stream_id;
#ifdef __cplusplus
	enum stream_class sc;
#else
	union {
		enum stream_class class;
		enum stream_class sc;
	};
#endif
	uint16_t size;
	uint32_t freq;  /* at most so many messages a second on average, not 0 */
	char name[32];
};

/* What this generation calls a data unit is an end of a channel. */
#define timedc_avtp channel

/* NAME_du for the row NAME of the manifest `net_fifo_chans`; WRITE, READ, ... are as later. */
#define NETFIFO_RX(x) \
	struct timedc_avtp *x##_du = \
		pdu_create_standalone(#x, false, net_fifo_chans, ARRAY_SIZE(net_fifo_chans))
#define NETFIFO_TX(x) \
	struct timedc_avtp *x##_du = \
		pdu_create_standalone(#x, true, net_fifo_chans, ARRAY_SIZE(net_fifo_chans))

/*
 * A descriptor instead: what is written to it is sent, what is read from it was received, a message
 * at a time. -1, and a line that says why, when it cannot be; always in a run, which does not
 * see a program wait for a descriptor.
 */
#define NETFIFO_TX_CREATE(x) nf_tx_create((x), net_fifo_chans, ARRAY_SIZE(net_fifo_chans))
#define NETFIFO_RX_CREATE(x) nf_rx_create((x), net_fifo_chans, ARRAY_SIZE(net_fifo_chans))
int nf_tx_create(const char *name, struct net_fifo *arr, int arr_size);
int nf_rx_create(const char *name, struct net_fifo *arr, int arr_size);

#define NF_CHAN_IDX(x) (nf_get_chan_idx((x), net_fifo_chans, ARRAY_SIZE(net_fifo_chans)))
#define NF_GET(x) (nf_get_chan((x), net_fifo_chans, ARRAY_SIZE(net_fifo_chans)))
#define NF_GET_REF(x) (nf_get_chan_ref((x), net_fifo_chans, ARRAY_SIZE(net_fifo_chans)))
int nf_get_chan_idx(const char *name, const struct net_fifo *arr, int arr_size);
struct net_fifo *nf_get_chan(const char *name, const struct net_fifo *arr, int arr_size);
const struct net_fifo *nf_get_chan_ref(const char *name, const struct net_fifo *arr, int arr_size);

/* As their successors nc_*. */
int nf_set_nic(const char *nic);
void nf_keep_cstate(void);
void nf_set_hmap_size(int sz);
void nf_use_srp(void);
void nf_use_ftrace(void);
void nf_breakval(int break_us);
void nf_verbose(void);
void nf_use_termtag(const char *devpath);
void nf_set_logfile(const char *logfile);
void nf_log_delay(void);

/* As nh_create_init and nh_create_init_standalone. */
struct nethandler *nh_init(const char *ifname, size_t hmap_size, const char *logfile);
int nh_init_standalone(void);

/* Callbacks are served without it: 0, or -EINVAL for NULL. */
int nh_start_rx(struct nethandler *nh);
/* Stops every end that reads. */
void nf_stop_rx(struct nethandler *nh);

/*
 * An end that nh_add_tx() or nh_add_rx() opens. As it has no rate, it is taken as one message in
 * each class measurement interval (125 us in class A, 250 us in B). Not in a run: it has no
 * name.
 */
struct timedc_avtp *pdu_create(struct nethandler *nh, unsigned char *dst, uint64_t stream_id,
			       enum stream_class sc, uint16_t sz);
struct timedc_avtp *pdu_create_standalone(const char *name, bool tx, struct net_fifo *arr,
					  int arr_size);
void pdu_destroy(struct timedc_avtp **pdu);
void *pdu_get_payload(struct timedc_avtp *pdu);

/* As their successors chan_*. */
int pdu_update(struct timedc_avtp *pdu, uint32_t ts, void *data);
int pdu_send(struct timedc_avtp *pdu);
int pdu_send_now(struct timedc_avtp *pdu, void *data);
int pdu_send_now_wait(struct timedc_avtp *pdu, void *data);
int pdu_read(struct timedc_avtp *pdu, void *data);
int pdu_read_wait(struct timedc_avtp *pdu, void *data);

#ifdef __cplusplus
}
#endif
