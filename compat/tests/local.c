/* What needs no other program: each test by its name. */
#include <logger.h>
#include <netchan_standalone.h>
#include <timedc_avtp.h>
#include <unistd.h>

#include "manifest.h"

#define NIC "eth0"
#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
			exit(1); \
		} \
	} while (0)

static struct nethandler *handler(void)
{
	struct nethandler *nh = nh_create_init(NIC, 4, NULL);
	CHECK(nh);
	return nh;
}

/* --- refused ---------------------------------------------------------------------------------- */

static void interfaces(void)
{
	CHECK(!nh_create_init("nosuch0", 4, NULL));
	CHECK(!nh_create_init("", 4, NULL));
	CHECK(!nh_create_init(NULL, 4, NULL));
	CHECK(!nh_create_init("a-name-that-no-interface-can-have", 4, NULL));
	CHECK(!nh_create_init(NIC, 4, "/nosuchdirectory/log.csv"));
	nc_set_nic("nosuch0");
	NETCHAN_TX(mcast42);
	NETCHAN_RX(mcast17);
	CHECK(!mcast42_du && !mcast17_du);
	/* A program that does not look at results fails, and does not crash. */
	struct sensor s = {0};
	CHECK(WRITE(mcast42, &s) < 0 && WRITE_WAIT(mcast42, &s) < 0);
	CHECK(READ(mcast17, &s) < 0 && READ_WAIT(mcast17, &s) < 0);
	CHECK(wait_for_tx_slot(mcast42_du) < 0 && chan_time_to_tx(NULL) == UINT64_MAX);
	CHECK(!chan_ready(NULL) && !chan_valid(NULL) && !chan_stop(NULL));
	CHECK(chan_ready_timedwait(NULL, 1000) == -EINVAL && !chan_get_payload(NULL));
	CHECK(chan_update(NULL, 0, &s) == -ENOMEM && chan_send(NULL, NULL) == -EINVAL);
	chan_dump_state(NULL);
	chan_destroy(NULL);
	nh_destroy(NULL);
	CLEANUP();
}

static void reservation(void)
{
	struct nethandler *nh = handler();
	nh_set_srp(nh, true);
	CHECK(!chan_create_tx(nh, &nc_channels[IDX_17]));
	nh_set_srp(nh, false);
	CHECK(chan_create_tx(nh, &nc_channels[IDX_17]));
	nh_destroy(&nh);
	nc_set_nic(NIC);
	nc_use_srp();
	NETCHAN_RX(mcast18);
	CHECK(!mcast18_du);
	CLEANUP();
}

static void manifests(void)
{
	struct channel_attrs bad[] = {
		nc_channels[IDX_42], nc_channels[IDX_17], nc_channels[IDX_18], nc_channels[IDX_42],
		nc_channels[IDX_LOAD], nc_channels[IDX_UNREAD],
	};
	bad[1].stream_id = 0;
	memset(bad[2].dst, 0, sizeof(bad[2].dst));
	bad[4].sc = (enum stream_class)7;
	bad[5].size = 1477;
	bad[5].interval_ns = 0;
	memset(bad[5].name, 'x', sizeof(bad[5].name));
	nc_set_nic(NIC);
	/* The row that is asked for is right; the manifest is not. */
	CHECK(!chan_create_standalone("mcast42", true, bad, ARRAY_SIZE(bad)));
	CHECK(!chan_create_standalone("missing", true, nc_channels, ARRAY_SIZE(nc_channels)));
	CHECK(!chan_create_standalone(NULL, true, nc_channels, ARRAY_SIZE(nc_channels)));
	struct nethandler *nh = handler();
	for (int i = 1; i < ARRAY_SIZE(bad); i++)
		CHECK(i == 3 || (!chan_create_tx(nh, &bad[i]) && !chan_create_rx(nh, &bad[i])));
	CHECK(!chan_create_tx(nh, NULL) && !chan_create_tx(NULL, bad));
	/* One talker for each stream, and both ends of one mind. */
	CHECK(chan_create_tx(nh, &bad[0]) && !chan_create_tx(nh, &bad[0]));
	bad[0].size = 8;
	CHECK(!chan_create_rx(nh, &bad[0]));
	nh_destroy(&nh);
}

static void admission(void)
{
	struct nethandler *nh = handler();
	/* 1,466 octets of the wire every 16 us are 733 Mb/s. */
	struct channel_attrs attrs = nc_channels[IDX_LOAD];
	attrs.interval_ns = 16000;
	int open = 0;
	for (attrs.stream_id = 100; attrs.stream_id < 200 && chan_create_tx(nh, &attrs);
	     attrs.stream_id++)
		open++;
	printf("admitted %d of %u Mb/s\n", open, nh->link_speed);
	CHECK(open == (int)(nh->link_speed * 3 / 4 / 733));
	/* What is received comes over the link's other direction. */
	attrs.stream_id = 300;
	CHECK(chan_create_rx(nh, &attrs));
	nh_destroy(&nh);
	/* What is closed counts no more. */
	nh = handler();
	CHECK(chan_create_tx(nh, &attrs));
	nh_destroy(&nh);
}

/* --- stopping --------------------------------------------------------------------------------- */

static void *blocked(void *channel)
{
	struct sensor s;
	/* In the end the result is an error: there is no talker. */
	return chan_read_wait(channel, &s) < 0 ? channel : NULL;
}

static void stop_while_reading(void (*how)(struct nethandler **, struct channel **))
{
	struct nethandler *nh = handler();
	struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_42]);
	struct channel *kept = rx;
	pthread_t thread;
	void *result = NULL;
	CHECK(rx && pthread_create(&thread, NULL, blocked, rx) == 0);
	struct timespec while_it_blocks = {.tv_nsec = 50 * NS_IN_MS};
	nanosleep(&while_it_blocks, NULL);
	how(&nh, &rx);
	CHECK(pthread_join(thread, &result) == 0 && result == kept);
	nh_destroy(&nh);
}

static void by_channel(struct nethandler **nh, struct channel **rx)
{
	(void)nh;
	CHECK(chan_stop(*rx) && !chan_stop(*rx) && (*rx)->stopping && !chan_ready(*rx));
	CHECK(chan_ready_timedwait(*rx, 20 * NS_IN_MS) == -ETIMEDOUT);
}

static void by_handler(struct nethandler **nh, struct channel **rx)
{
	nh_stop(*nh);
	CHECK((*rx)->stopping);
}

static void by_destroying(struct nethandler **nh, struct channel **rx)
{
	chan_destroy(rx);
	CHECK(!*rx && nh_get_num_rx(*nh) == 0);
}

static void stopping(void)
{
	stop_while_reading(by_channel);
	stop_while_reading(by_handler);
	stop_while_reading(by_destroying);
}

/* --- by hand ---------------------------------------------------------------------------------- */

static void *last_private;
static struct avtpdu_cshdr *last_pdu;

static int callback(void *priv_data, struct avtpdu_cshdr *du)
{
	last_private = priv_data;
	last_pdu = du;
	return 0;
}

static void feeding(void)
{
	struct nethandler *nh = handler();
	struct channel *tx = chan_create_tx(nh, &nc_channels[IDX_42]);
	struct sensor s = {7, 8}, got = {0, 0};
	CHECK(tx && chan_update(tx, tai_to_avtp_ns(tai_get_ns()), &s) == 0);
	CHECK(nh_feed_pdu(NULL, &tx->pdu) == -EINVAL && nh_feed_pdu(nh, NULL) == -EINVAL);
	CHECK(nh_feed_pdu(nh, &tx->pdu) == -EBADFD);
	struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_42]);
	/* Without a callback of its own the channel gets it. */
	CHECK(rx && nh_feed_pdu(nh, &tx->pdu) == 0 && chan_read_wait(rx, &got) == sizeof(got));
	CHECK(got.val == 7 && got.seqnr == 8);
	CHECK(nh_std_cb(rx->cbp, &tx->pdu) == sizeof(s) && chan_read(rx, &got) == sizeof(got));
	/* A message of another length is discarded. */
	tx->pdu.sdl = 0;
	CHECK(nh_feed_pdu(nh, &tx->pdu) == -EINVAL);

	int value = 0;
	CHECK(nh_reg_callback(nh, 1, NULL, NULL) == -EINVAL && nh_reg_callback(NULL, 1, 0, callback));
	CHECK(nh_reg_callback(nh, 42, &value, callback) == 0 && nh_feed_pdu(nh, &tx->pdu) == 0);
	CHECK(last_private == &value && last_pdu == &tx->pdu);
	for (uint64_t id = 1; id <= 3; id++)
		CHECK(nh_reg_callback(nh, id, NULL, callback) == 0);
	CHECK(nh_reg_callback(nh, 4, NULL, callback) == -ENOMEM);

	CHECK(nh_remove_tx(NULL) == -ENOMEM && nh_remove_rx(tx) == -ENOMEM);
	CHECK(nh_remove_tx(tx) == 0 && nh_remove_tx(tx) == -ENOMEM && nh_get_num_tx(nh) == 0);
	CHECK(chan_send_now(tx, &s) == -EINVAL && nh_add_tx(nh, tx) == 0);
	CHECK(chan_send_now(tx, &s) == sizeof(s));
	nh_destroy(&nh);
	CHECK(!nh);
}

/* --- both ends in one program, on the loopback ------------------------------------------------ */

static void loopback(void)
{
	struct nethandler *nh = nh_create_init("lo", 4, NULL);
	struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_42]);
	struct channel *tx = chan_create_tx(nh, &nc_channels[IDX_42]);
	CHECK(rx && tx && chan_valid(rx) && chan_valid(tx));
	for (uint64_t i = 0; i < 20; i++) {
		struct sensor s = {i, ~i}, got = {0, 0};
		CHECK(chan_send_now(tx, &s) == sizeof(s));
		CHECK((i % 2 ? chan_read(rx, &got) : chan_read_wait(rx, &got)) == sizeof(got));
		CHECK(got.val == i && got.seqnr == ~i && rx->pdu.seqnr == (uint8_t)i);
		CHECK(rx->pdu.avtp_timestamp == tx->pdu.avtp_timestamp);
		CHECK(memcmp(chan_get_payload(rx), &s, sizeof(s)) == 0);
	}
	chan_destroy(&tx);
	CHECK(!tx && nh_get_num_tx(nh) == 0 && nh_get_num_rx(nh) == 1);
	nh_destroy(&nh);
}

static void data_units(void)
{
	unsigned char dst[] = {0x01, 0x00, 0x5E, 0x01, 0x02, 0x42}, none[6] = {0};
	uint64_t value = 0xdeadbeef, got = 0;
	struct nethandler *nh = nh_init("lo", 16, NULL);
	struct timedc_avtp *tx = pdu_create(nh, dst, 43, CLASS_A, sizeof(value));
	struct timedc_avtp *rx = pdu_create(nh, dst, 43, CLASS_A, sizeof(value));
	CHECK(nh && tx && rx);
	CHECK(!pdu_create(nh, none, 43, CLASS_A, 8) && !pdu_create(nh, dst, 0, CLASS_A, 8));
	CHECK(pdu_send(NULL) == -ENOMEM && pdu_send(tx) == -EINVAL && pdu_update(tx, 1, NULL) == -ENOMEM);
	CHECK(nh_add_tx(NULL, tx) == -EINVAL && nh_add_tx(nh, NULL) == -EINVAL);
	CHECK(nh_add_rx(nh, rx) == 0 && nh_add_tx(nh, tx) == 0 && nh_add_tx(nh, tx) == 0);
	CHECK(nh_add_rx(nh, tx) == -EBUSY && nh_get_num_tx(nh) == 1 && nh_start_rx(nh) == 0);
	CHECK(pdu_update(tx, 5, &value) == 0 && *(uint64_t *)pdu_get_payload(tx) == value);
	CHECK(pdu_send(tx) == sizeof(value) && pdu_read(rx, &got) == sizeof(got) && got == value);
	CHECK(pdu_send_now_wait(tx, &value) == sizeof(value) && pdu_read_wait(rx, &got) == sizeof(got));
	nf_stop_rx(nh);
	CHECK(pdu_read(rx, &got) < 0 && pdu_send_now(tx, &value) == sizeof(value));
	pdu_destroy(&tx);
	CHECK(!tx);
	nh_destroy(&nh);
}

/* --- time and log ----------------------------------------------------------------------------- */

static void time_helpers(void)
{
	struct timespec ts = {.tv_sec = 1, .tv_nsec = 0};
	ts_subtract_ns(&ts, 100);
	CHECK(ts.tv_sec == 0 && ts.tv_nsec == NS_IN_SEC - 100);
	ts_add_ns(&ts, 100 + 2 * NS_IN_SEC);
	CHECK(ts.tv_sec == 3 && ts.tv_nsec == 0);
	ts_subtract_ns(&ts, 2500 * NS_IN_MS);
	CHECK(ts.tv_sec == 0 && ts.tv_nsec == 500 * NS_IN_MS);
	ts_normalize(NULL);
	CHECK(!pt_init(0, 0, CLOCK_TAI) && !pt_init(0, 1, 77) && !pt_init(1024, 1000, CLOCK_REALTIME));
	CHECK(pt_next_cycle(NULL) == -1);
	struct periodic_timer *pt = pt_init(0, 10 * NS_IN_MS, CLOCK_MONOTONIC);
	uint64_t before = real_get_ns();
	for (int i = 0; i < 3; i++)
		CHECK(pt && pt_next_cycle(pt) == 0);
	CHECK(real_get_ns() - before >= 29 * (uint64_t)NS_IN_MS);
	free(pt);
}

/* More lines than the original's log could hold, and fast. */
static void log_lines(void)
{
	struct logc *log = log_create("lines.csv");
	struct avtpdu_cshdr du = {.subtype = AVTP_SUBTYPE_NETCHAN};
	CHECK(log && !log_create("/nosuchdirectory/lines.csv") && !log_create(NULL));
	log_tx(log, &du, 1, 2, 3);
	log_reset(log);
	struct timespec pause = {.tv_nsec = 10 * NS_IN_MS};
	for (uint64_t i = 0; i < 1200000; i++) {
		log_rx(log, &du, i, i + 1);
		if (i % 50000 == 0)
			log_flush_and_rotate(log);
		else if (i % 2000 == 0)
			nanosleep(&pause, NULL);
	}
	log_wakeup_delay(log, 1, 1, 2);
	log_stop(log);
	log_rx(log, &du, 0, 0);
	log_close(log);
	log_close(NULL);
}

/* --- the machine ------------------------------------------------------------------------------ */

#define LATENCY "/dev/cpu_dma_latency"

/* How many descriptors of this program are of the device. */
static int holds(void)
{
	int held = 0;
	for (int fd = 0; fd < 256; fd++) {
		char name[32], to[64];
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		ssize_t octets = readlink(name, to, sizeof(to));
		held += octets == (ssize_t)strlen(LATENCY) && memcmp(to, LATENCY, octets) == 0;
	}
	return held;
}

/* The program's locked memory, in KiB. */
static long locked(void)
{
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmLck: %ld kB", &kib);
	if (status)
		fclose(status);
	return kib;
}

static void idle_states(void)
{
	int may = access(LATENCY, W_OK) == 0;
	printf("%s\n", may ? "held" : "not there");
	CHECK(locked() == 0);
	struct nethandler *nh = handler();
	CHECK(locked() > 0 && holds() == 0);
	struct channel *tx = chan_create_tx(nh, &nc_channels[IDX_42]);
	CHECK(tx && holds() == may);
	CHECK(chan_create_rx(nh, &nc_channels[IDX_17]) && holds() == may);
	chan_destroy(&tx);
	CHECK(holds() == may);
	nh_destroy(&nh);
	CHECK(holds() == 0);
	nc_keep_cstate();
	nh = handler();
	CHECK(chan_create_tx(nh, &nc_channels[IDX_42]) && holds() == 0);
	nh_destroy(&nh);
}

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*test)(void);
	} tests[] = {
		{"interfaces", interfaces}, {"reservation", reservation}, {"manifests", manifests},
		{"admission", admission}, {"stopping", stopping}, {"feeding", feeding},
		{"loopback", loopback}, {"data_units", data_units},
		{"time_helpers", time_helpers}, {"log_lines", log_lines},
		{"idle_states", idle_states},
	};
	for (int i = 0; argc == 2 && i < ARRAY_SIZE(tests); i++) {
		if (strcmp(argv[1], tests[i].name) == 0) {
			tests[i].test();
			printf("done\n");
			return 0;
		}
	}
	return 2;
}
