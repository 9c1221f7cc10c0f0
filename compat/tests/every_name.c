/* Every name of the interface, with its type; C and C++. It is compiled and linked, not run. */
#include <logger.h>
#include <netchan.h>
#include <netchan_args.h>
#include <netchan_standalone.h>
#include <netchan_utils.h>
#include <ptp_getclock.h>
#include <timedc_args.h>
#include <timedc_avtp.h>

#include "manifest.h"

struct net_fifo net_fifo_chans[1];

static int on_message(void *priv_data, struct avtpdu_cshdr *du)
{
	return nh_std_cb(priv_data, du);
}

static void handlers(struct nethandler *nh, struct channel *ch, struct avtpdu_cshdr *du)
{
	nh = nh_create_init("eth0", 16, NULL);
	nh_stop(nh);
	nh_set_verbose(nh, true);
	nh_set_srp(nh, false);
	bool set = nh_set_tx_prio(nh, SC_TAS, DEFAULT_TX_TAS_SOCKET_PRIO);
	nh_set_trace_breakval(nh, 500);
	nh_enable_ftrace(nh);
	nh_rotate_logs(nh);
	nh_list_active_channels(nh);
	int n = nh_get_num_tx(nh) + nh_get_num_rx(nh) + nh_add_tx(nh, ch) + nh_add_rx(nh, ch);
	n += nh_remove_tx(ch) + nh_remove_rx(ch) + nh_reg_callback(nh, 42, NULL, on_message);
	n += nh_feed_pdu(nh, du) + nh_feed_pdu_ts(nh, du, 0, 0);
	nh_debug(NC_INFO, ch, "%d %d", n, set);
	log_reset(nh->logger);
	nh_destroy(&nh);
}

static void *body(void *argument)
{
	return argument;
}

static void threads(void)
{
	pthread_t thread;
	void *result = NULL;
	if (pthread_create(&thread, NULL, body, NULL) == 0)
		pthread_join(thread, &result);
	if ((pthread_create)(&thread, NULL, body, NULL) == 0)
		(pthread_join)(thread, &result);
	if (nc_pthread_create(&thread, NULL, body, NULL) == 0)
		nc_pthread_join(thread, &result);
}

static void channels(struct nethandler *nh, void *data)
{
	struct channel_attrs *attrs = NC_GET("mcast17");
	const struct channel_attrs *row = NC_GET_REF("mcast17");
	struct channel *ch = chan_create_tx(nh, &nc_channels[NC_CHAN_IDX("mcast17")]);
	ch = chan_create_rx(nh, attrs);
	bool is = chan_ready(ch) && chan_stop(ch) && chan_valid(ch) && ch->stopping;
	uint64_t ns = chan_time_to_tx(ch) + get_class_delay_bound_ns(ch) + ch->sidw.s64 + ch->sidw.s8[0];
	int n = chan_ready_timedwait(ch, 100 * NS_IN_MS) + chan_update(ch, 0, data);
	n += chan_send(ch, &ns) + chan_send_now(ch, data) + chan_send_now_wait(ch, data);
	n += chan_read(ch, data) + chan_read_wait(ch, data) + wait_for_tx_slot(ch);
	int64_t error = chan_delay(ch, ns);
	chan_dump_state(ch);
	if (ch->nh->verbose && ch->sc == SC_CLASS_B && chan_get_payload(ch) && ch->payload_size)
		DEBUG(ch, "%d", n);
	INFO(ch, "%d", is);
	WARN(ch, "%s", row->name);
	ERROR(NULL, "%" PRId64, error);
	chan_destroy(&ch);
	free(attrs);
}

static void standalone(int argc, char *argv[])
{
	GET_ARGS();
	nc_set_nic((char *)"eth0");
	nc_set_hmap_size(17);
	nc_use_srp();
	nc_use_ftrace();
	nc_breakval(500);
	nc_verbose();
	nc_set_logfile("log.csv");
	nc_log_delay();
	nc_keep_cstate();
	nc_use_termtag("/dev/ttyS0");
	nc_tx_sock_prio(3, SC_CLASS_A);
	uint64_t v = nh_create_init_standalone() == 0;
	NETCHAN_TX(mcast17);
	NETCHAN_RX(mcast18);
	WRITE(mcast17, &v);
	WRITE_WAIT(mcast17, &v);
	READ(mcast18, &v);
	READ_WAIT(mcast18, &v);
	struct channel *ch = chan_create_standalone("load", true, nc_channels, ARRAY_SIZE(nc_channels));
	chan_destroy(&ch);
	CLEANUP();
	nh_destroy_standalone();
}

static void times(struct timespec *ts)
{
	struct periodic_timer *pt = pt_init(0, US_IN_MS * NS_IN_US, CLOCK_TAI);
	free(pt_init_from_attr(&nc_channels[0]));
	pt_next_cycle(pt);
	ts_normalize(ts);
	ts_add_ns(ts, NS_IN_HOUR);
	ts_subtract_ns(ts, tai_get_ns() - real_get_ns() + tai_to_avtp_ns(0));
	free(pt);
}

static void first_generation(struct nethandler *nh, void *data)
{
	nf_set_nic((char *)DEFAULT_NIC);
	nf_keep_cstate();
	nf_set_hmap_size(17);
	nf_use_srp();
	nf_use_ftrace();
	nf_breakval(500);
	nf_verbose();
	nf_use_termtag("/dev/ttyS0");
	nf_set_logfile("log.csv");
	nf_log_delay();
	NETFIFO_TX(mcast42);
	NETFIFO_RX(mcast17);
	int n = NETFIFO_TX_CREATE("mcast42") + NETFIFO_RX_CREATE("mcast42") + NF_CHAN_IDX("mcast42");
	struct net_fifo *copy = NF_GET("mcast42");
	const struct net_fifo *row = NF_GET_REF("mcast42");
	unsigned char dst[] = DEFAULT_MCAST;
	struct timedc_avtp *du = pdu_create(nh, dst, 42, CLASS_B, 8);
	n += pdu_update(du, 0, data) + pdu_send(du) + pdu_send_now(du, data);
	n += pdu_send_now_wait(du, data) + pdu_read(du, data) + pdu_read_wait(du, data);
	n += nh_start_rx(nh) + nh_init_standalone() + FREQ_TO_MS(row ? row->freq : 1) + (copy != NULL);
	nf_stop_rx(nh);
	nh = nh_init("eth0", 16, NULL);
	pdu_get_payload(du);
	pdu_destroy(&du);
	free(copy);
	printf("%d %d %p %p\n", n, AVTP_SUBTYPE_TIMEDC, (void *)mcast42_du, (void *)mcast17_du);
}

int main(int argc, char *argv[])
{
	struct avtpdu_cshdr du;
	struct timespec ts = {0, 0};
	memset(&du, 0, sizeof(du));
	/* The stream header has 24 octets. */
	char header[sizeof(du) == 24 ? 1 : -1] = {0};
	handlers(NULL, NULL, &du);
	channels(NULL, &du);
	threads();
	standalone(argc, argv);
	times(&ts);
	first_generation(NULL, &du);
	return header[0];
}
