/*
 * first.c: the first generation's names for the same things.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <timedc_avtp.h>

#define CLASS_A_INTERVAL_NS (125 * NS_IN_US)
#define CLASS_B_INTERVAL_NS (250 * NS_IN_US)

int nf_set_nic(const char *nic)
{
	return nc_set_nic(nic);
}

void nf_keep_cstate(void)
{
	nc_keep_cstate();
}

void nf_set_hmap_size(int sz)
{
	nc_set_hmap_size(sz);
}

void nf_use_srp(void)
{
	nc_use_srp();
}

void nf_use_ftrace(void)
{
	nc_use_ftrace();
}

void nf_breakval(int break_us)
{
	nc_breakval(break_us);
}

void nf_verbose(void)
{
	nc_verbose();
}

void nf_use_termtag(const char *devpath)
{
	nc_use_termtag(devpath);
}

void nf_set_logfile(const char *logfile)
{
	nc_set_logfile(logfile);
}

void nf_log_delay(void)
{
	nc_log_delay();
}

/* --- manifest --------------------------------------------------------------------------------- */

static struct channel_attrs attrs_of(const struct net_fifo *row)
{
	struct channel_attrs attrs = {
		.stream_id = row->stream_id,
		.sc = row->sc,
		.size = row->size,
		.interval_ns = row->freq ? (uint64_t)NS_IN_SEC / row->freq : 0,
	};
	memcpy(attrs.dst, row->dst, sizeof(attrs.dst));
	memcpy(attrs.name, row->name, sizeof(attrs.name));
	return attrs;
}

int nf_get_chan_idx(const char *name, const struct net_fifo *arr, int arr_size)
{
	if (!name || !arr)
		return -1;
	for (int i = 0; i < arr_size; i++)
		if (strncmp(arr[i].name, name, sizeof(arr[i].name)) == 0)
			return i;
	return -1;
}

const struct net_fifo *nf_get_chan_ref(const char *name, const struct net_fifo *arr, int arr_size)
{
	int i = nf_get_chan_idx(name, arr, arr_size);
	return i < 0 ? NULL : &arr[i];
}

struct net_fifo *nf_get_chan(const char *name, const struct net_fifo *arr, int arr_size)
{
	const struct net_fifo *row = nf_get_chan_ref(name, arr, arr_size);
	struct net_fifo *copy = row ? malloc(sizeof(*copy)) : NULL;
	if (copy)
		*copy = *row;
	return copy;
}

/* --- handler and channels --------------------------------------------------------------------- */

struct nethandler *nh_init(const char *ifname, size_t hmap_size, const char *logfile)
{
	return nh_create_init(ifname, hmap_size, logfile);
}

int nh_init_standalone(void)
{
	return nh_create_init_standalone();
}

int nh_start_rx(struct nethandler *nh)
{
	return nh ? 0 : -EINVAL;
}

void nf_stop_rx(struct nethandler *nh)
{
	for (struct channel *ch = nh ? nh->du_rx_head : NULL; ch; ch = ch->next)
		chan_stop(ch);
}

struct timedc_avtp *pdu_create(struct nethandler *nh, unsigned char *dst, uint64_t stream_id,
			       enum stream_class sc, uint16_t sz)
{
	if (!nh || !dst)
		return NULL;
	struct channel_attrs attrs = {
		.stream_id = stream_id,
		.sc = sc,
		.size = sz,
		.interval_ns = sc == SC_CLASS_B ? CLASS_B_INTERVAL_NS : CLASS_A_INTERVAL_NS,
	};
	memcpy(attrs.dst, dst, sizeof(attrs.dst));
	return nc_manifest_valid("pdu_create", &attrs, 1) ? nc_chan_new(nh, &attrs) : NULL;
}

struct timedc_avtp *pdu_create_standalone(const char *name, bool tx, struct net_fifo *arr,
					  int arr_size)
{
	if (!name || !arr || arr_size <= 0)
		return NULL;
	struct channel_attrs *rows = calloc((size_t)arr_size, sizeof(*rows));
	if (!rows)
		return NULL;
	for (int i = 0; i < arr_size; i++)
		rows[i] = attrs_of(&arr[i]);
	struct channel *ch = nc_standalone("net_fifo_chans", name, tx, rows, arr_size);
	free(rows);
	return ch;
}

static int create_pipe(const char *name, bool tx, struct net_fifo *arr, int arr_size)
{
	if (nc_in_run()) {
		nh_debug(NC_ERROR, NULL, "channel \"%s\": no descriptors in a run",
			 name ? name : "");
		return -1;
	}
	struct channel *ch = pdu_create_standalone(name, tx, arr, arr_size);
	int fd = ch ? nc_pipe_open(ch) : -1;
	if (fd < 0)
		chan_destroy(&ch);
	return fd;
}

int nf_tx_create(const char *name, struct net_fifo *arr, int arr_size)
{
	return create_pipe(name, true, arr, arr_size);
}

int nf_rx_create(const char *name, struct net_fifo *arr, int arr_size)
{
	return create_pipe(name, false, arr, arr_size);
}

void pdu_destroy(struct timedc_avtp **pdu)
{
	chan_destroy(pdu);
}

void *pdu_get_payload(struct timedc_avtp *pdu)
{
	return chan_get_payload(pdu);
}

int pdu_update(struct timedc_avtp *pdu, uint32_t ts, void *data)
{
	return chan_update(pdu, ts, data);
}

int pdu_send(struct timedc_avtp *pdu)
{
	return pdu ? chan_send(pdu, NULL) : -ENOMEM;
}

int pdu_send_now(struct timedc_avtp *pdu, void *data)
{
	return chan_send_now(pdu, data);
}

int pdu_send_now_wait(struct timedc_avtp *pdu, void *data)
{
	return chan_send_now_wait(pdu, data);
}

int pdu_read(struct timedc_avtp *pdu, void *data)
{
	return chan_read(pdu, data);
}

int pdu_read_wait(struct timedc_avtp *pdu, void *data)
{
	return chan_read_wait(pdu, data);
}
