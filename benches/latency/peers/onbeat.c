/*
 * Onbeat's C API on a real interface. The variant is the transport, `schedule` if the reader
 * follows the schedule, or both: `xdp-schedule`; or the integrity of the channel; or `many`: flat
 * out the talker hands over 16 messages in one call; or `selector-N`, perhaps behind a transport: N
 * channels in turn, which the listener waits for with one selector.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"

#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define NAME "latency"
#define MOST 1024
#define MANY 16
#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void good(onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "%s: %s\n", what, onbeat_last_error());
		exit(1);
	}
}

static char names[MOST][16];
static int count;

/* How many channels a variant has. */
static int channels_of(const char *variant)
{
	const char *selector = strstr(variant, "selector-");
	int wanted = selector ? atoi(strchr(selector, '-') + 1) : 1;

	if (wanted < 1 || wanted > MOST)
		bench_fail("selector-N");
	return wanted;
}

static onbeat *open_interface(const char *variant)
{
	static onbeat_channel channels[MOST];
	onbeat_channel channel = {
		.destination = { 0x91, 0xe0, 0xf0, 0x00, 0x0e, 0x02 },
		.stream_id = UINT64_C(0x0200000000010001),
		.traffic_class = ONBEAT_CLASS_A,
		.size = BENCH_SIZE,
		/* The declared rate shall be checked, not be what limits: a talker that a stall of the
		 * machine held up sends at once what is due, as a bare socket does. The interval is the
		 * true one, because a reader that follows the schedule goes by it. */
		.interval_ns = bench_period() ? bench_period() : 1000,
		.burst = bench_period() ? 32 : 1000,
	};
	onbeat_interface interface = { .name = BENCH_INTERFACE, .transport = ONBEAT_PACKET };
	onbeat *context;

	if (strstr(variant, "crc"))
		channel.traffic_class |= ONBEAT_CRC;
	if (strstr(variant, "authenticated")) {
		channel.traffic_class |= ONBEAT_AUTHENTICATED;
		/* Any key will do; the program wipes it. */
		setenv("ONBEAT_KEY", KEY, 1);
	}
	if (strstr(variant, "schedule"))
		interface.flags = ONBEAT_FOLLOW_SCHEDULE;
	if (strstr(variant, "xdp"))
		interface.transport = ONBEAT_XDP;
	else if (strstr(variant, "udp"))
		interface.transport = ONBEAT_UDP4;
	count = channels_of(variant);
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), NAME "%d", i);
		channels[i] = channel;
		channels[i].name = names[i];
		channels[i].stream_id += i;
		channels[i].destination[4] += i >> 8;
		channels[i].destination[5] += i;
	}
	good(onbeat_open_interface_sized(&interface, sizeof(interface), channels,
					 sizeof(*channels), count, &context),
	     "onbeat_open_interface_sized");
	return context;
}

/* A socket for each channel. */
static void allow_files(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void write_many(onbeat_talker *talker)
{
	struct bench_message messages[MANY] = { 0 };
	size_t made;

	do {
		for (made = 0; made < MANY && bench_next(&messages[made]);)
			made++;
		if (made)
			good(onbeat_write_many(talker, messages, made, NULL, NULL),
			     "onbeat_write_many");
	} while (made == MANY);
}

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };
	onbeat *context;
	static onbeat_talker *talkers[MOST];

	allow_files();
	context = open_interface(variant);
	for (int i = 0; i < count; i++)
		good(onbeat_talker_open(context, names[i], BENCH_SIZE, &talkers[i]),
		     "onbeat_talker_open");
	good(onbeat_start(context), "onbeat_start");
	if (strstr(variant, "many") && !bench_period())
		write_many(talkers[0]);
	else
		for (int i = 0; bench_next(&message); i = (i + 1) % count)
			good(onbeat_write(talkers[i], &message, NULL), "onbeat_write");
}

/* Waits for all of them at once. */
static void listen_to(onbeat *context, onbeat_listener *const *listeners)
{
	const onbeat_listener *const *ends = (const onbeat_listener *const *)listeners;
	struct bench_message message;
	onbeat_selector *selector;
	size_t index;

	good(onbeat_selector_open(context, ends, count, &selector), "onbeat_selector_open");
	bench_ready();
	for (;;) {
		good(onbeat_selector_wait(selector, -1, &index), "onbeat_selector_wait");
		if (onbeat_try_read(listeners[index], &message, NULL) == ONBEAT_OK)
			bench_arrived(&message);
	}
}

void bench_listener(const char *variant)
{
	struct bench_message message;
	onbeat *context;
	static onbeat_listener *listeners[MOST];

	allow_files();
	context = open_interface(variant);
	for (int i = 0; i < count; i++)
		good(onbeat_listener_open(context, names[i], BENCH_SIZE, &listeners[i]),
		     "onbeat_listener_open");
	good(onbeat_start(context), "onbeat_start");
	if (strstr(variant, "selector"))
		listen_to(context, listeners);
	bench_ready();
	for (;;) {
		good(onbeat_read(listeners[0], &message, NULL), "onbeat_read");
		bench_arrived(&message);
	}
}
