/* Several threads in one channel, callbacks that close, descriptors without a reader: each test by
 * its name. All are on the loopback; what hangs is ended by an alarm. */
#include <fcntl.h>
#include <netchan_standalone.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <timedc_avtp.h>
#include <unistd.h>

#include "manifest.h"

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
			exit(1); \
		} \
	} while (0)

static struct nethandler *handler(const char *log)
{
	struct nethandler *nh = nh_create_init("lo", 4, log);
	CHECK(nh);
	return nh;
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_IN_MS};
	while (nanosleep(&ts, &ts) != 0)
		;
}

static pthread_t start(void *(*body)(void *), void *argument)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, body, argument) == 0);
	return thread;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static void unread_pipe(void)
{
	struct nethandler *nh = handler(NULL);
	unsigned char load[LOAD_SIZE], got[LOAD_SIZE];
	int fds[2];
	CHECK(pipe(fds) == 0 && fcntl(fds[1], F_SETPIPE_SZ, 4096) >= 4096);
	struct cb_priv cbp = {.sz = LOAD_SIZE, .fd = fds[1]};
	CHECK(nh_reg_callback(nh, 50, &cbp, nh_std_cb) == 0);
	CHECK(chan_create_rx(nh, &nc_channels[IDX_LOAD]));
	struct channel *tx = chan_create_tx(nh, &nc_channels[IDX_LOAD]);
	struct pollfd room = {.fd = fds[1], .events = POLLOUT};
	do {
		memset(load, 0x5A, sizeof(load));
		CHECK(chan_send_now(tx, load) == LOAD_SIZE);
	} while (poll(&room, 1, 0) > 0);
	/* One more makes the channel's thread wait. */
	CHECK(chan_send_now(tx, load) == LOAD_SIZE);
	pause_ms(200);
	nh_destroy(&nh);
	close(fds[1]);
	ssize_t size;
	while ((size = read(fds[0], got, sizeof(got))) > 0)
		CHECK(size == LOAD_SIZE && memcmp(got, load, sizeof(load)) == 0);
}

static struct net_fifo net_fifo_chans[] = {
	{
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x52},
		.stream_id = 52,
		.class = CLASS_A,
		.size = 8,
		.freq = 1,
		.name = "slow",
	},
	{
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x53},
		.stream_id = 53,
		.class = CLASS_A,
		.size = 8,
		.freq = 8000,
		.name = "fast",
	},
};

static void slow_descriptor(void)
{
	nf_set_nic("lo");
	int fd = NETFIFO_TX_CREATE("slow");
	CHECK(fd >= 0);
	for (uint64_t i = 0; i < 100; i++)
		CHECK(write(fd, &i, sizeof(i)) == sizeof(i));
	/* At its rate it would take 100 s; the alarm comes before. */
	CLEANUP();
}

static bool over;

static void *send_on(void *channel)
{
	uint64_t value = 0;
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		CHECK(chan_send_now(channel, &value) == sizeof(value));
	return NULL;
}

/* The channels' threads give the descriptor, which ends first, what they read. */
static void shared_descriptor(void)
{
	struct nethandler *nh = handler(NULL);
	struct channel_attrs fast = {.dst = {0x01, 0x00, 0x5E, 0x01, 0x11, 0x53}, .stream_id = 53,
				     .sc = SC_CLASS_A, .size = 8, .interval_ns = 125000};
	struct channel *tx = chan_create_tx(nh, &fast);
	pthread_t thread = start(send_on, tx);
	nf_set_nic("lo");
	for (int i = 0; i < 20; i++) {
		uint64_t value;
		int fd = NETFIFO_RX_CREATE("fast");
		NETFIFO_RX(fast);
		CHECK(fd >= 0 && fast_du && read(fd, &value, sizeof(value)) == sizeof(value));
		CLEANUP();
		close(fd);
	}
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	CHECK(pthread_join(thread, NULL) == 0);
	nh_destroy(&nh);
}

/* --- callbacks that close --------------------------------------------------------------------- */

static struct channel *own;
static struct nethandler *whole;
static sem_t called;
static int calls;

static int destroy_channel(void *priv_data, struct avtpdu_cshdr *du)
{
	CHECK(*(int *)priv_data == 7 && du->subtype == AVTP_SUBTYPE_NETCHAN);
	calls++;
	struct channel *ch = own;
	CHECK(nh_remove_rx(ch) == -EBUSY);
	chan_destroy(&ch);
	CHECK(!ch);
	sem_post(&called);
	/* Whoever gets here has still got its message. */
	pause_ms(100);
	CHECK(du->subtype == AVTP_SUBTYPE_NETCHAN);
	return 0;
}

static int destroy_handler(void *priv_data, struct avtpdu_cshdr *du)
{
	(void)priv_data;
	calls++;
	nh_destroy(&whole);
	CHECK(!whole && du->subtype == AVTP_SUBTYPE_NETCHAN);
	sem_post(&called);
	return 0;
}

static void closing_callback(int (*cb)(void *priv_data, struct avtpdu_cshdr *du))
{
	struct nethandler *senders = handler(NULL);
	int seven = 7;
	struct sensor s = {1, 2};
	whole = handler("threads.csv");
	calls = 0;
	CHECK(nh_reg_callback(whole, 42, &seven, cb) == 0);
	own = chan_create_rx(whole, &nc_channels[IDX_42]);
	struct channel *tx = chan_create_tx(senders, &nc_channels[IDX_42]);
	CHECK(own && tx && chan_send_now(tx, &s) > 0 && sem_wait(&called) == 0);
	CHECK(chan_send_now(tx, &s) > 0);
	pause_ms(200);
	nh_destroy(&whole);
	nh_destroy(&senders);
	CHECK(calls == 1);
}

static void own_channel(void)
{
	closing_callback(destroy_channel);
}

static void own_handler(void)
{
	closing_callback(destroy_handler);
}

/* --- two in one channel ----------------------------------------------------------------------- */

#define EACH 100

static uint64_t next_value;

/* Each has values of its own: a payload that another thread overwrites is seen. */
static void *send_values(void *channel)
{
	unsigned char load[LOAD_SIZE];
	for (int i = 0; i < EACH; i++) {
		uint64_t value = __atomic_fetch_add(&next_value, 1, __ATOMIC_RELAXED);
		memset(load, (int)value, sizeof(load));
		memcpy(load, &value, sizeof(value));
		CHECK(chan_send_now(channel, load) == LOAD_SIZE);
	}
	return NULL;
}

static void two_senders(void)
{
	struct nethandler *nh = handler(NULL);
	struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_LOAD]);
	struct channel *tx = chan_create_tx(nh, &nc_channels[IDX_LOAD]);
	CHECK(rx && tx);
	pthread_t a = start(send_values, tx), b = start(send_values, tx);
	bool seen[2 * EACH] = {false};
	unsigned char load[LOAD_SIZE];
	for (int i = 0; i < 2 * EACH; i++) {
		uint64_t value;
		CHECK(chan_read(rx, load) == LOAD_SIZE);
		memcpy(&value, load, sizeof(value));
		CHECK(value < 2 * EACH && !seen[value]);
		seen[value] = true;
		for (size_t at = sizeof(value); at < sizeof(load); at++)
			CHECK(load[at] == (unsigned char)value);
	}
	CHECK(pthread_join(a, NULL) == 0 && pthread_join(b, NULL) == 0);
	nh_destroy(&nh);
}

static unsigned reads;

static void *read_values(void *channel)
{
	struct sensor s;
	int result;
	while ((result = chan_read(channel, &s)) == sizeof(s)) {
		CHECK(s.seqnr == ~s.val);
		__atomic_add_fetch(&reads, 1, __ATOMIC_SEQ_CST);
	}
	CHECK(result == -ECANCELED);
	return NULL;
}

static int never(void *priv_data, struct avtpdu_cshdr *du)
{
	(void)priv_data, (void)du;
	abort();
}

static void two_readers(void)
{
	struct nethandler *nh = handler(NULL);
	struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_42]);
	struct channel *tx = chan_create_tx(nh, &nc_channels[IDX_42]);
	CHECK(rx && tx);
	pthread_t a = start(read_values, rx), b = start(read_values, rx);
	for (uint64_t i = 0; i < 50; i++) {
		struct sensor s = {i, ~i};
		CHECK(chan_send_now(tx, &s) == sizeof(s));
	}
	while (__atomic_load_n(&reads, __ATOMIC_SEQ_CST) < 50)
		pause_ms(1);
	/* Both are inside: no callback takes their messages. */
	pause_ms(100);
	CHECK(nh_reg_callback(nh, 42, NULL, never) == -EBUSY);
	struct sensor s = {50, ~50ull};
	CHECK(chan_send_now(tx, &s) == sizeof(s));
	while (__atomic_load_n(&reads, __ATOMIC_SEQ_CST) < 51)
		pause_ms(1);
	CHECK(chan_stop(rx) && pthread_join(a, NULL) == 0 && pthread_join(b, NULL) == 0);
	nh_destroy(&nh);
}

/* --- closing while others are inside ---------------------------------------------------------- */

static sem_t held, released;

static void hold(int signal)
{
	(void)signal;
	sem_post(&held);
	while (sem_wait(&released) != 0)
		;
}

static void *read_once(void *channel)
{
	struct sensor s;
	CHECK(chan_read_wait(channel, &s) < 0);
	return NULL;
}

/* A thread that is held up, here by a signal's handler, continues in the channel after its end. */
static void held_thread(void (*close)(struct nethandler **, struct channel *))
{
	struct nethandler *nh = handler("threads.csv");
	struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_42]);
	struct sigaction action = {.sa_handler = hold};
	CHECK(rx && sigaction(SIGUSR1, &action, NULL) == 0);
	pthread_t thread = start(read_once, rx);
	pause_ms(100);
	CHECK(pthread_kill(thread, SIGUSR1) == 0 && sem_wait(&held) == 0);
	close(&nh, rx);
	sem_post(&released);
	CHECK(pthread_join(thread, NULL) == 0);
	nh_destroy(&nh);
}

static void by_destroying(struct nethandler **nh, struct channel *rx)
{
	(void)rx;
	nh_destroy(nh);
	CHECK(!*nh);
}

static void by_removing(struct nethandler **nh, struct channel *rx)
{
	(void)nh;
	CHECK(nh_remove_rx(rx) == -EBUSY);
	chan_destroy(&rx);
}

static void thread_inside(void)
{
	held_thread(by_destroying);
	held_thread(by_removing);
}

static void *read_on(void *channel)
{
	struct sensor s;
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
		CHECK(chan_read(channel, &s) < 0);
		chan_stop(channel);
		CHECK(chan_delay(channel, 1) <= 0);
	}
	return NULL;
}

static void removing(void)
{
	struct nethandler *nh = handler(NULL);
	struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_42]);
	pthread_t a = start(read_on, rx), b = start(read_on, rx);
	for (int i = 0; i < 300; i++) {
		CHECK(nh_remove_rx(rx) == 0);
		CHECK(nh_add_rx(nh, rx) == 0);
	}
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	chan_stop(rx);
	CHECK(pthread_join(a, NULL) == 0 && pthread_join(b, NULL) == 0);
	nh_destroy(&nh);
}

static int ignore(void *priv_data, struct avtpdu_cshdr *du)
{
	(void)priv_data, (void)du;
	return 0;
}

static void *reg_on(void *nh)
{
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		CHECK(nh_reg_callback(nh, 42, NULL, ignore) == 0);
	return NULL;
}

static void registering(void)
{
	struct nethandler *nh = handler(NULL);
	pthread_t a = start(reg_on, nh), b = start(reg_on, nh);
	for (int i = 0; i < 50; i++) {
		struct channel *rx = chan_create_rx(nh, &nc_channels[IDX_42]);
		CHECK(rx);
		chan_destroy(&rx);
	}
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	CHECK(pthread_join(a, NULL) == 0 && pthread_join(b, NULL) == 0);
	nh_destroy(&nh);
}

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*test)(void);
	} tests[] = {
		{"unread_pipe", unread_pipe}, {"slow_descriptor", slow_descriptor},
		{"shared_descriptor", shared_descriptor},
		{"own_channel", own_channel}, {"own_handler", own_handler},
		{"two_senders", two_senders}, {"two_readers", two_readers},
		{"thread_inside", thread_inside}, {"removing", removing},
		{"registering", registering},
	};
	sem_init(&called, 0, 0);
	sem_init(&held, 0, 0);
	sem_init(&released, 0, 0);
	alarm(240);
	for (int i = 0; argc == 2 && i < ARRAY_SIZE(tests); i++) {
		if (strcmp(argv[1], tests[i].name) == 0) {
			tests[i].test();
			printf("done\n");
			return 0;
		}
	}
	return 2;
}
