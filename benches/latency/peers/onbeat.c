/*
 * Onbeat's C API on a real interface. The variant is the transport, `schedule` if the reader
 * follows the schedule, or both: `xdp-schedule`; or the integrity of the channel.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"

#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "latency"
#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void good(onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "%s: %s\n", what, onbeat_last_error());
		exit(1);
	}
}

static onbeat *open_interface(const char *variant)
{
	onbeat_channel channel = {
		.name = NAME,
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
	good(onbeat_open_interface_sized(&interface, sizeof(interface), &channel, sizeof(channel), 1,
					 &context),
	     "onbeat_open_interface_sized");
	return context;
}

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };
	onbeat *context = open_interface(variant);
	onbeat_talker *talker;

	good(onbeat_talker_open(context, NAME, BENCH_SIZE, &talker), "onbeat_talker_open");
	good(onbeat_start(context), "onbeat_start");
	while (bench_next(&message))
		good(onbeat_write(talker, &message, NULL), "onbeat_write");
}

void bench_listener(const char *variant)
{
	struct bench_message message;
	onbeat *context = open_interface(variant);
	onbeat_listener *listener;

	good(onbeat_listener_open(context, NAME, BENCH_SIZE, &listener), "onbeat_listener_open");
	good(onbeat_start(context), "onbeat_start");
	bench_ready();
	for (;;) {
		good(onbeat_read(listener, &message, NULL), "onbeat_read");
		bench_arrived(&message);
	}
}
