/*
 * One of two programs that meet over two channels in opposite directions, and, in between, sleep
 * with clock_nanosleep to instants that both know: how exactly do both wake up, and how far apart?
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <onbeat.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define INTERVAL_NS 1000000
#define ROUNDS_MAX 1000000
/* The most work between two sleeps: what makes the two come at different times. */
#define WORK_NS 200000
/* The run begins that long after the first message, when all pages are touched. */
#define WARM_UP 20

struct message {
	uint64_t round;
	int64_t baseline_ns; /* the talker's: when both sleep until, of CLOCK_TAI */
	uint8_t rest[48];
};

struct sample {
	uint64_t peer_round;
	int64_t met_ns, met_error_ns;     /* CLOCK_MONOTONIC at wake-up; target minus wake-up */
	int64_t slept_ns, slept_error_ns; /* the same of the baseline */
};

static const onbeat_channel channels[] = {
	{ .name = "forth", .destination = { 0x91, 0xe0, 0xf0, 0x00, 0x0e, 0x11 },
	  .stream_id = UINT64_C(0x0200000000010011), .size = sizeof(struct message),
	  .interval_ns = INTERVAL_NS },
	{ .name = "back", .destination = { 0x91, 0xe0, 0xf0, 0x00, 0x0e, 0x12 },
	  .stream_id = UINT64_C(0x0200000000020012), .size = sizeof(struct message),
	  .interval_ns = INTERVAL_NS },
};

static struct sample *samples;

static int64_t now_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

/* xorshift64. */
static uint64_t random_of(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void work(uint64_t *state)
{
	int64_t until_ns = now_of(CLOCK_MONOTONIC) + (int64_t)(random_of(state) % WORK_NS);

	while (now_of(CLOCK_MONOTONIC) < until_ns)
		;
}

static void good(onbeat_status status, const char *what)
{
	if (status == ONBEAT_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, onbeat_last_error());
	exit(1);
}

/* What the channels' sleep is measured against: the kernel's, called as simply as can be. */
static void baseline(int64_t until_ns, struct sample *sample)
{
	struct timespec until = { until_ns / SECOND, until_ns % SECOND };

	while (clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	sample->slept_error_ns = until_ns - now_of(CLOCK_TAI);
	sample->slept_ns = now_of(CLOCK_MONOTONIC);
}

static void run(onbeat_talker *talker, onbeat_listener *listener, int talks, uint64_t rounds,
		int64_t period_ns)
{
	uint64_t random = talks ? 88172645463325252 : 2463534242;

	for (uint64_t round = 0; round < rounds; round++) {
		struct sample *sample = &samples[round];
		struct message mine = { .round = round }, its;
		onbeat_message info;

		mine.baseline_ns = now_of(CLOCK_TAI) + period_ns;
		good(onbeat_rendezvous(talker, &mine, listener, &its, &info), "onbeat_rendezvous");
		sample->met_ns = now_of(CLOCK_MONOTONIC);
		sample->met_error_ns = info.wakeup_error_ns;
		sample->peer_round = its.round;
		work(&random);
		baseline(talks ? mine.baseline_ns : its.baseline_ns, sample);
		work(&random);
	}
}

static void print_samples(uint64_t rounds)
{
	for (uint64_t round = WARM_UP; round < rounds; round++) {
		const struct sample *s = &samples[round];

		printf("%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
		       round, s->peer_round, s->met_ns, s->met_error_ns, s->slept_ns,
		       s->slept_error_ns);
	}
}

int main(int argc, char **argv)
{
	onbeat_interface interface = { .name = "veth0" };
	onbeat *context;
	onbeat_talker *talker;
	onbeat_listener *listener;

	/* Nothing is left when the runner is killed; exact timers for the baseline too. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	if (argc != 4) {
		fprintf(stderr, "usage: %s talker|listener ROUNDS PERIOD_NS\n", argv[0]);
		return 2;
	}
	int talks = strcmp(argv[1], "talker") == 0;
	uint64_t rounds = strtoull(argv[2], NULL, 10) + WARM_UP;

	if (rounds > ROUNDS_MAX)
		return 2;
	samples = calloc(rounds, sizeof *samples);
	good(onbeat_open_interface(&interface, channels, 2, &context), "onbeat_open_interface");
	good(onbeat_talker_open(context, channels[!talks].name, sizeof(struct message), &talker),
	     "onbeat_talker_open");
	good(onbeat_listener_open(context, channels[talks].name, sizeof(struct message), &listener),
	     "onbeat_listener_open");
	good(onbeat_start(context), "onbeat_start");
	if (!samples || mlockall(MCL_CURRENT))
		perror("memory stays swappable");
	puts("ready");
	fflush(stdout);
	/* Both must listen before one writes. */
	if (getchar() != '\n')
		return 1;
	run(talker, listener, talks, rounds, strtoll(argv[3], NULL, 10));
	print_samples(rounds);
	return 0;
}
