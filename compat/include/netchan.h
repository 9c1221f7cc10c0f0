/*
 * netchan.h: the interface of the public network-channel library net_chan, on Onbeat.
 *
 * Programs written for that library compile with this header and run on Onbeat: on a network
 * interface, or in a run when `onbeat run` starts them. docs/compat.md says what maps to what.
 * New programs use onbeat.h.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if.h>
#include <linux/if_ether.h>

#include <netchan_utils.h>
#include <ptp_getclock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The empty multicast group, as an initializer. */
#define DEFAULT_MCAST {0x01, 0x00, 0x5E, 0x00, 0x00, 0x00}

/* Experimental stream subtype of IEEE 1722. */
#define AVTP_SUBTYPE_NETCHAN 0x7F

/* Largest payload of one frame. */
#define NC_PAYLOAD_MAX 1476

enum {
	DEFAULT_CLASS_B_PRIO = 2,
	DEFAULT_CLASS_A_PRIO = 3,
	DEFAULT_CLASS_TAS_PRIO = 5,
	DEFAULT_TX_TAS_SOCKET_PRIO = 5
};

/* Traffic class; the value is the channel's fixed delay in ns. */
enum stream_class {
	SC_TAS = 100000,
	SC_CLASS_A = 2000000,
	SC_CLASS_B = 50000000,
	/* Earlier spelling. */
	CLASS_A = SC_CLASS_A,
	CLASS_B = SC_CLASS_B
};

enum nc_loglevel { NC_DEBUG, NC_INFO, NC_WARN, NC_ERROR };

/* A row of the manifest. */
struct channel_attrs {
	uint8_t dst[ETH_ALEN];  /* group or address of the stream, not zero */
	uint64_t stream_id;     /* unique in the network, not 0 */
	enum stream_class sc;
	uint16_t size;          /* octets of a message, 1..NC_PAYLOAD_MAX */
	uint64_t interval_ns;   /* least mean time between two messages, not 0 */
	char name[32];
};

union stream_id_wrapper {
	uint64_t s64;
	uint8_t s8[8];
};

/* The common stream header of IEEE 1722, as it is in a frame. */
struct avtpdu_cshdr {
	uint8_t subtype;
	uint8_t tv : 1;
	uint8_t fsd : 2;
	uint8_t mr : 1;
	uint8_t version : 3;
	uint8_t sv : 1;
	uint8_t seqnr;
	uint8_t tu : 1;
	uint8_t fsd_1 : 7;
	uint64_t stream_id;       /* big-endian */
	uint32_t avtp_timestamp;  /* big-endian */
	uint32_t fsd_2;
	uint16_t sdl;             /* big-endian: octets of the payload that follows */
	uint16_t fsd_3;
} __attribute__((packed));

struct channel;
struct logc;
struct nc_end;
struct nc_core;

/* Where nh_std_cb puts a payload: in a descriptor, or (ch not NULL) where chan_read finds it. */
struct cb_priv {
	int sz;
	int fd;
	struct channel *ch;
};

/* An interface and the channels on it. Programs read `verbose`, `ifname` and `logger`. */
struct nethandler {
	struct channel *du_tx_head;
	struct channel *du_tx_tail;
	struct channel *du_rx_head;
	struct channel *du_rx_tail;
	char ifname[IFNAMSIZ];
	unsigned int link_speed;  /* Mb/s */
	bool verbose;
	bool use_srp;
	bool in_run;              /* `onbeat run` started the program */
	bool ftrace;
	int ftrace_break_us;      /* -1: never */
	int tx_sock_prio[3];      /* class A, B, scheduled; 0: the class's own */
	size_t hmap_sz;
	struct logc *logger;
	struct nc_core *core;
};

/* One end of a channel. Programs read what stands before `cbp`. */
struct channel {
	struct nethandler *nh;
	struct channel *next;
	uint8_t dst[ETH_ALEN];
	union stream_id_wrapper sidw;
	enum stream_class sc;
	int pcp_prio;
	int tx_sock_prio;
	uint16_t payload_size;
	bool ready;
	bool stopping;
	uint64_t interval_ns;
	uint64_t next_tx_ns;      /* when the next message is due */
	bool second;              /* the next message is the second one */
	char name[32];
	struct cb_priv *cbp;
	struct nc_end *end;
	unsigned busy;            /* threads that are in a call with it */
	pthread_mutex_t use;      /* one thread at a time sends or reads */
	struct avtpdu_cshdr pdu;  /* the header of the last message, its payload behind it */
	unsigned char payload[NC_PAYLOAD_MAX];
};

/* --- messages to the user: warnings and errors always, the rest if the handler is verbose ----- */

void nh_debug(enum nc_loglevel level, const struct channel *ch, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#ifndef DEBUG
#define DEBUG(ch, ...) nh_debug(NC_DEBUG, ch, __VA_ARGS__)
#endif
#ifndef INFO
#define INFO(ch, ...) nh_debug(NC_INFO, ch, __VA_ARGS__)
#endif
#ifndef WARN
#define WARN(ch, ...) nh_debug(NC_WARN, ch, __VA_ARGS__)
#endif
#ifndef ERROR
#define ERROR(ch, ...) nh_debug(NC_ERROR, ch, __VA_ARGS__)
#endif

/* --- manifest --------------------------------------------------------------------------------- */

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(x) ((int)(sizeof(x) / sizeof((x)[0])))
#endif

/* The row called `name`: its index or -1; a copy, to be freed, or NULL; the row itself or NULL. */
int nc_get_chan_idx(const char *name, const struct channel_attrs *attrs, int arr_size);
struct channel_attrs *nc_get_chan(const char *name, const struct channel_attrs *attrs,
				  int arr_size);
const struct channel_attrs *nc_get_chan_ref(const char *name, const struct channel_attrs *attrs,
					    int arr_size);

#define NC_CHAN_IDX(x) (nc_get_chan_idx((x), nc_channels, ARRAY_SIZE(nc_channels)))
#define NC_GET(x) (nc_get_chan((x), nc_channels, ARRAY_SIZE(nc_channels)))
#define NC_GET_REF(x) (nc_get_chan_ref((x), nc_channels, ARRAY_SIZE(nc_channels)))

/* --- threads ---------------------------------------------------------------------------------- */

/*
 * pthread_create and pthread_join, so that threads of a program take part in a run and may use its
 * channels; outside of a run they are those of the system. One that is created before the first
 * call which sends, reads or waits begins with that call. A program that defines
 * NETCHAN_PLAIN_THREADS, or writes (pthread_create)(...), has plain threads. Timed C, which is
 * checked by the system's names, has them, too.
 */
int nc_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *argument),
		      void *argument);
int nc_pthread_join(pthread_t thread, void **result);

#if !defined(NETCHAN_PLAIN_THREADS) && !defined(TIMEDC_TRANSLATING)
#define pthread_create(thread, attr, body, argument) nc_pthread_create(thread, attr, body, argument)
#define pthread_join(thread, result) nc_pthread_join(thread, result)
#endif

/* --- handler ---------------------------------------------------------------------------------- */

/*
 * A handler for the interface `ifname` with room for `hmap_size` callbacks; `logfile` (NULL: none)
 * gets the delay log. NULL, and a line that says why, when there is no such interface or it may not
 * be used. In a run the interface's name is of no meaning.
 */
struct nethandler *nh_create_init(const char *ifname, size_t hmap_size, const char *logfile);

/*
 * Stops and frees the channels, writes the log, frees the handler and sets *nh to NULL. What a
 * thread is still in after a second is left unfreed, and so is a handler that one of its own
 * callbacks destroys: its channels are stopped then. A line says so.
 */
void nh_destroy(struct nethandler **nh);

/* Stops every channel: whatever waits in one returns within 100 ms. Allowed in signal handlers. */
void nh_stop(struct nethandler *nh);

void nh_set_verbose(struct nethandler *nh, bool verbose);

/*
 * Asks for stream reservation, of channels that are created later. In a run the run's reservation
 * applies. On an interface a channel asks the reservation service (`onbeat srp serve`) or mrpd, and
 * is not created without one; writes wait until the first listener is ready, and while none is.
 */
void nh_set_srp(struct nethandler *nh, bool use_srp);

/* SO_PRIORITY, 0..15, of the channels of a class; false for others or once there are talkers. */
bool nh_set_tx_prio(struct nethandler *nh, enum stream_class sc, int tx_prio);

/* For the channels created afterwards: freeze the kernel trace above a latency; write markers. */
void nh_set_trace_breakval(struct nethandler *nh, int break_us);
void nh_enable_ftrace(struct nethandler *nh);

/* Writes what was logged to LOG-n and LOG_d-n, n = 0, 1, ..., and continues with an empty log. */
void nh_rotate_logs(struct nethandler *nh);

void nh_list_active_channels(struct nethandler *nh);
int nh_get_num_tx(struct nethandler *nh);
int nh_get_num_rx(struct nethandler *nh);

/* Makes `ch` an open end of the handler: 0, or a negative errno. Ends that are open stay it. */
int nh_add_tx(struct nethandler *nh, struct channel *ch);
int nh_add_rx(struct nethandler *nh, struct channel *ch);

/* Closes the end, which remains to be destroyed: 0, -ENOMEM when it is no such end, or -EBUSY when
 * a thread does not leave it, as its own callback cannot. */
int nh_remove_tx(struct channel *ch);
int nh_remove_rx(struct channel *ch);

/*
 * Calls `cb` for each message of the stream: from a thread of its own for each end that reads it
 * and by nh_feed_pdu. `du` is followed by the payload and valid during the call. 0, -EINVAL,
 * -ENOMEM when the handler's map is full, or -EBUSY, and nothing registered, while another thread
 * reads the stream. Registered again, the new callback replaces the old.
 */
int nh_reg_callback(struct nethandler *nh, uint64_t stream_id, void *priv_data,
		    int (*cb)(void *priv_data, struct avtpdu_cshdr *du));

/* The standard callback: `data` is a struct cb_priv. Octets written, or a negative errno. A full
 * descriptor makes it wait; when a channel's thread calls it, while the channel is open. */
int nh_std_cb(void *data, struct avtpdu_cshdr *du);

/*
 * Gives a message to the callback of its stream, or to the end that reads it. What the callback
 * returned; -EINVAL for NULL or a malformed header; -EBADFD for a stream without a reader.
 */
int nh_feed_pdu(struct nethandler *nh, struct avtpdu_cshdr *du);
int nh_feed_pdu_ts(struct nethandler *nh, struct avtpdu_cshdr *du, uint64_t rx_hw_ns,
		   uint64_t recv_ptp_ns);

/* --- channels --------------------------------------------------------------------------------- */

/* An end that writes, or one that reads. NULL, and a line that says why, when it cannot be. */
struct channel *chan_create_tx(struct nethandler *nh, struct channel_attrs *attrs);
struct channel *chan_create_rx(struct nethandler *nh, struct channel_attrs *attrs);

/* Stops the end, waits for what is in it, frees it and sets *ch to NULL. By its own callback: it is
 * freed with the handler. */
void chan_destroy(struct channel **ch);

/* Open and not stopped; with reservation, once bandwidth is reserved. */
bool chan_ready(struct channel *ch);

/* 0 when ready within `timeout_ns`, else -ETIMEDOUT; -EINVAL for NULL. */
int chan_ready_timedwait(struct channel *ch, uint64_t timeout_ns);

/*
 * Whatever waits in the channel returns within 100 ms, and later calls fail. False when it is
 * stopped already. Allowed in signal handlers.
 */
bool chan_stop(struct channel *ch);

bool chan_valid(struct channel *ch);
void chan_dump_state(struct channel *ch);

/* Takes payload and timestamp for chan_send(): 0, -ENOMEM for NULL. */
int chan_update(struct channel *ch, uint32_t ts, void *data);

/* The last payload, or NULL. */
void *chan_get_payload(struct channel *ch);

/*
 * Several threads may use a channel: one at a time sends or reads, the others wait for it.
 * All that send return the octets sent, which is `payload_size`, or a negative errno. They wait
 * while the channel's rate is exceeded.
 * chan_send: what chan_update() took; at *tx_ns if that is in the future (at most an hour), else
 * now; *tx_ns (NULL allowed) gets the capture time.
 */
int chan_send(struct channel *ch, uint64_t *tx_ns);
int chan_send_now(struct channel *ch, void *data);
int chan_send_now_wait(struct channel *ch, void *data);

/* Octets read, which is `payload_size`, or a negative errno; `data` is untouched then. */
int chan_read(struct channel *ch, void *data);
int chan_read_wait(struct channel *ch, void *data);

/* ns until the rate allows a message; UINT64_MAX for an invalid channel. */
uint64_t chan_time_to_tx(struct channel *ch);

/* Waits until the rate allows a message: 0 or a negative errno. */
int wait_for_tx_slot(struct channel *ch);

/* Sleeps until `target_ns` of the network clock. Target minus wake-up, negative after it; INT64_MIN
 * when it could not sleep. */
int64_t chan_delay(struct channel *ch, uint64_t target_ns);

/* The class's fixed delay; 0 for NULL. */
uint64_t get_class_delay_bound_ns(struct channel *ch);

#ifdef __cplusplus
}
#endif
