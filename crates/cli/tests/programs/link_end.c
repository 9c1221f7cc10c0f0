/* One end of a channel `c` on an interface that goes and comes:
 *   link_end talk write|try|at|wait [TRANSPORT [SIZE]]
 *   link_end listen read|timeout|poll|select|epoll|watch [TRANSPORT [SIZE]]
 * A talker writes a message every 5 ms, paced by the channel's rate (`write`, `wait`), by its own
 * sleeps (`try`), or by the instants that it names (`at`). A listener waits for messages as the
 * word says, `poll` every 5 ms; `watch` prints what it knows of its talker whenever that changes,
 * with a deadline of 300 ms, and nothing else before its end. All others print a line when a call
 * tells something else than the call before. All continue whatever they are told until their
 * standard input ends. Then a listener takes what is there yet, and they print one line with what
 * happened: calls by what they told, their own counts, and the microseconds of CPU time that the
 * process took.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#define _GNU_SOURCE
#include "common.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define NS_IN_MS INT64_C(1000000)
#define EVERY_NS (5 * NS_IN_MS)

enum { OK, EMPTY, TIMED_OUT, LINK_DOWN, NETWORK, OTHER, KINDS };
static const char *const NAMES[KINDS] = {"ok", "empty", "timed_out", "link_down", "network",
					 "other"};

static long told[KINDS];
static int last = -1;
static long in_a_row;
static int watches;

static int64_t cpu_us(void)
{
	struct timespec at;

	EXPECT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at) == 0);
	return (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

static void note(onbeat_status status)
{
	int kind = status == ONBEAT_OK	      ? OK
		   : status == ONBEAT_EMPTY     ? EMPTY
		   : status == ONBEAT_TIMED_OUT ? TIMED_OUT
		   : status == ONBEAT_LINK_DOWN ? LINK_DOWN
		   : status == ONBEAT_E_NETWORK ? NETWORK
						: OTHER;

	told[kind]++;
	if (watches)
		return;
	in_a_row = kind == EMPTY ? in_a_row + 1 : 0;
	/* That there is nothing yet is no news of one that looks often. */
	if (kind != last && (kind != EMPTY || in_a_row > 40)) {
		last = kind;
		printf("%s %ld %s\n", NAMES[kind], told[OK],
		       status < 0 ? onbeat_last_error() : "");
		fflush(stdout);
	}
}

static int is_over(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	return poll(&input, 1, 0) == 1;
}

static void sleep_5_ms(onbeat *context)
{
	int64_t now_ns;

	must(onbeat_now(context, &now_ns));
	must(onbeat_sleep_until(context, now_ns + EVERY_NS, NULL));
}

static void talk(onbeat *context, const char *how, const char *octets, onbeat_talker *talker)
{
	int64_t at;

	must(onbeat_now(context, &at));
	while (!is_over()) {
		if (strcmp(how, "write") == 0) {
			note(onbeat_write(talker, octets, NULL));
		} else if (strcmp(how, "wait") == 0) {
			note(onbeat_write_wait(talker, octets, NULL, NULL));
		} else if (strcmp(how, "at") == 0) {
			at += EVERY_NS;
			note(onbeat_write_at(talker, octets, at, NULL));
		} else {
			note(onbeat_try_write(talker, octets, NULL));
			sleep_5_ms(context);
		}
	}
}

/* What is read then is told; a wait that ends so is told as one. */
static onbeat_status receive(onbeat *context, onbeat_listener *listener, const char *how,
			     char *octets, int events)
{
	const onbeat_listener *listeners[] = {listener};
	struct epoll_event event;
	size_t ready;
	onbeat_status status;

	if (strcmp(how, "timeout") == 0)
		return onbeat_read_timeout(listener, octets, 200 * NS_IN_MS, NULL);
	if (strcmp(how, "select") == 0) {
		status = onbeat_select(context, listeners, 1, 200 * NS_IN_MS, &ready);
		if (status != ONBEAT_OK)
			return status;
	} else if (strcmp(how, "epoll") == 0) {
		int count = epoll_wait(events, &event, 1, 200);

		EXPECT(count >= 0);
		if (count == 0)
			return ONBEAT_TIMED_OUT;
	} else {
		sleep_5_ms(context);
	}
	return onbeat_try_read(listener, octets, NULL);
}

static void watch(onbeat *context, onbeat_listener *listener, char *octets)
{
	const onbeat_listener *listeners[] = {listener};
	onbeat_liveness known;
	onbeat_status status;
	size_t index;

	/* A select that is told of the talker has nothing to read. */
	status = onbeat_select(context, listeners, 1, 5000 * NS_IN_MS, &index);
	EXPECT(status == ONBEAT_OK || status == ONBEAT_TIMED_OUT);
	do {
		status = onbeat_try_read(listener, octets, NULL);
		note(status);
	} while (status == ONBEAT_OK);
	must(onbeat_listener_liveness(listener, sizeof(known), &known));
	if (known.changed & ~(uint32_t)ONBEAT_OUT_OF_SYNC) {
		printf("live changed %u state %u missed %" PRIu64 " restarts %" PRIu64
		       " second %" PRIu64 "\n", known.changed, known.state,
		       known.deadline_missed, known.restarts, known.second_talker);
		fflush(stdout);
	}
}

static void hear(onbeat *context, const char *how, char *octets, onbeat_listener *listener)
{
	struct epoll_event event = {.events = EPOLLIN};
	int events = epoll_create1(EPOLL_CLOEXEC);
	int descriptor;

	EXPECT(events >= 0);
	if (strcmp(how, "epoll") == 0) {
		must(onbeat_listener_descriptor(listener, &descriptor));
		EXPECT(epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) == 0);
	}
	if (strcmp(how, "watch") == 0) {
		watches = 1;
		must(onbeat_listener_deadline(listener, 300 * NS_IN_MS));
		while (!is_over())
			watch(context, listener, octets);
	} else if (strcmp(how, "read") == 0) {
		int64_t now_ns;

		/* Each waits for ever, but for the limit. */
		while (!is_over()) {
			must(onbeat_now(context, &now_ns));
			must(onbeat_listener_limit(listener, now_ns + 500 * NS_IN_MS));
			note(onbeat_read(listener, octets, NULL));
		}
	} else {
		while (!is_over())
			note(receive(context, listener, how, octets, events));
	}
	while (onbeat_try_read(listener, octets, NULL) == ONBEAT_OK)
		told[OK]++;
	close(events);
}

int main(int argc, char **argv)
{
	static char octets[1500];

	EXPECT(argc >= 3);
	const onbeat_interface interface = {
		.name = "eth0",
		.transport = argc > 3 ? (uint32_t)atoi(argv[3]) : ONBEAT_PACKET,
	};
	const size_t size = argc > 4 ? strtoul(argv[4], NULL, 0) : 8;
	const onbeat_channel channel = {
		.name = "c",
		.destination = {1, 0, 0x5e, 0, 0, 1},
		.stream_id = 1,
		.traffic_class = ONBEAT_CLASS_A,
		.size = (uint32_t)size,
		.interval_ns = EVERY_NS,
	};
	onbeat_counters counters;
	onbeat_listener *listener;
	onbeat_talker *talker;
	onbeat *context;

	must(onbeat_open_interface(&interface, &channel, 1, &context));
	if (strcmp(argv[1], "talk") == 0) {
		must(onbeat_talker_open(context, "c", size, &talker));
		talk(context, argv[2], octets, talker);
		must(onbeat_talker_counters(talker, &counters));
		onbeat_talker_close(talker);
	} else {
		must(onbeat_listener_open(context, "c", size, &listener));
		hear(context, argv[2], octets, listener);
		must(onbeat_listener_counters(listener, &counters));
		onbeat_listener_close(listener);
	}
	printf("end");
	for (int kind = 0; kind < KINDS; kind++)
		printf(" %s %ld", NAMES[kind], told[kind]);
	printf(" sent %" PRIu64 " received %" PRIu64 " lost %" PRIu64 " talker %" PRIu64
	       " cpu %" PRId64 "\n",
	       counters.sent, counters.received, counters.lost, counters.rejected_talker,
	       cpu_us());
	onbeat_close(context);
	return 0;
}
