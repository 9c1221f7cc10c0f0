/* A mesh of programs, each of which sends to all and reads from all, itself perhaps too: channels
 * without names, found by their streams, and a thread for each reader. */
#include <netchan.h>

#include <argp.h>
#include <pthread.h>
#include <unistd.h>

#include <logger.h>

#define PROGRAMS_MAX 8
#define FIRST_STREAM 42
#define READY 0xfeedULL
#define END UINT64_MAX

struct reader {
	struct channel *rx;
	pthread_t thread;
	pthread_t own;      /* as the thread itself sees it */
	bool ready;         /* its talker was heard */
	unsigned messages;  /* between READY and END, in order */
	int result;         /* of the last read */
};

static const char *nic = "eth0", *logfile;
static int programs = 2, self, iterations = 20;
static bool others_only;
static struct reader readers[PROGRAMS_MAX];

static error_t option(int key, char *argument, struct argp_state *state)
{
	switch (key) {
	case 'n':
		nic = argument;
		return 0;
	case 's':
		programs = atoi(argument);
		return 0;
	case 'I':
		self = atoi(argument);
		return 0;
	case 'i':
		iterations = atoi(argument);
		return 0;
	case 'L':
		logfile = argument;
		return 0;
	case 'o':
		others_only = true;
		return 0;
	default:
		(void)state;
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"nic", 'n', "NIC", 0, "interface", 0},
	{"programs", 's', "N", 0, "how many there are", 0},
	{"self", 'I', "INDEX", 0, "which one this is", 0},
	{"iterations", 'i', "N", 0, "messages of each channel", 0},
	{"log", 'L', "FILE", 0, "the delay log", 0},
	{"others", 'o', NULL, 0, "no channel to itself", 0},
	{0},
};

static const struct argp usage = {.options = options, .parser = option};

static struct channel_attrs attrs(int talker, int listener)
{
	uint8_t id = (uint8_t)(FIRST_STREAM + talker * programs + listener);
	struct channel_attrs channel = {
		.dst = {0x01, 0x00, 0x5E, 0x01, 0x01, id},
		.stream_id = id,
		.sc = SC_CLASS_A,
		.size = sizeof(uint64_t),
		.interval_ns = 10 * NS_IN_MS,
	};
	return channel;
}

static bool is_left_out(int other)
{
	return others_only && other == self;
}

static void *drain(void *argument)
{
	struct channel *rx = argument;
	struct reader *reader = NULL;
	for (int i = 0; i < programs; i++)
		if (rx && rx->sidw.s64 == attrs(i, self).stream_id)
			reader = &readers[i];
	if (!reader)
		return NULL;
	reader->own = pthread_self();
	while (chan_ready_timedwait(rx, 100 * NS_IN_MS) != 0)
		;
	uint64_t value = 0;
	while (value != END) {
		reader->result = chan_read(rx, &value);
		if (reader->result < 0)
			break;
		if (value == READY)
			__atomic_store_n(&reader->ready, true, __ATOMIC_SEQ_CST);
		else if (value == reader->messages)
			reader->messages++;
	}
	return reader;
}

/* Never touches a channel. */
static void *compute(void *argument)
{
	unsigned long *sum = argument;
	for (unsigned long i = 1; i <= 100000; i++)
		*sum += i;
	return sum;
}

static void start_reader(struct nethandler *nh, int talker)
{
	struct reader *reader = &readers[talker];
	struct channel_attrs channel = attrs(talker, self);
	pthread_attr_t with_stack;
	pthread_attr_init(&with_stack);
	pthread_attr_setstacksize(&with_stack, 1 << 20);
	reader->rx = chan_create_rx(nh, &channel);
	/* With attributes and without. */
	if (!reader->rx || pthread_create(&reader->thread, talker % 2 ? &with_stack : NULL, drain,
					  reader->rx) != 0)
		exit(1);
	pthread_attr_destroy(&with_stack);
}

static bool all_ready(void)
{
	for (int i = 0; i < programs; i++)
		if (!is_left_out(i) && !__atomic_load_n(&readers[i].ready, __ATOMIC_SEQ_CST))
			return false;
	return true;
}

static int send_all(struct channel **tx, uint64_t value)
{
	int errors = 0;
	for (int i = 0; i < programs; i++)
		errors += tx[i] && chan_send_now(tx[i], &value) < 0;
	return errors;
}

static int joined(void)
{
	int errors = 0;
	for (int i = 0; i < programs; i++) {
		struct reader *reader = &readers[i];
		void *result = NULL;
		if (is_left_out(i))
			continue;
		bool right = pthread_join(reader->thread, &result) == 0 && result == reader &&
			     pthread_equal(reader->own, reader->thread);
		printf("from %d: %u messages\n", i, reader->messages);
		errors += !right || reader->result != (int)sizeof(uint64_t);
	}
	return errors;
}

int main(int argc, char **argv)
{
	argp_parse(&usage, argc, argv, 0, NULL, NULL);
	struct nethandler *nh = nh_create_init(nic, 2 * (size_t)programs + 1, logfile);
	if (!nh || programs > PROGRAMS_MAX)
		return 1;
	nh_set_verbose(nh, false);
	nh_set_srp(nh, false);
	struct channel *tx[PROGRAMS_MAX] = {NULL};
	for (int i = 0; i < programs; i++) {
		struct channel_attrs channel = attrs(self, i);
		if (!is_left_out(i) && !(tx[i] = chan_create_tx(nh, &channel)))
			return 1;
	}
	unsigned long sum = 0;
	pthread_t computing;
	if (pthread_create(&computing, NULL, compute, &sum) != 0)
		return 1;
	for (int i = 0; i < programs; i++)
		if (!is_left_out(i))
			start_reader(nh, i);
	nh_list_active_channels(nh);
	struct periodic_timer *timer = pt_init(0, 10 * NS_IN_MS, CLOCK_TAI);
	int errors = 0;
	while (!all_ready()) {
		pt_next_cycle(timer);
		errors += send_all(tx, READY);
	}
	/* Others may have heard this program before it heard them, but not the other way round. */
	pt_next_cycle(timer);
	errors += send_all(tx, READY);
	log_reset(nh->logger);
	for (int i = 0; i < iterations; i++) {
		pt_next_cycle(timer);
		errors += send_all(tx, (uint64_t)i);
	}
	pt_next_cycle(timer);
	errors += send_all(tx, END);
	errors += joined();
	void *result = NULL;
	errors += pthread_join(computing, &result) != 0 || result != &sum || sum != 5000050000;
	free(timer);
	nh_destroy(&nh);
	printf("errors %d\n", errors);
	return errors ? 1 : 0;
}
