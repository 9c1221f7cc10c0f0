/* One end of a reserved stream on an interface:
 *   srp_end talk|listen INTERFACE STREAM SIZE COUNT FIRST_MS LIMIT_MS
 * A talker writes COUNT messages, 0 for no end, one each 2 ms, and stops when a write waits longer
 * than the limit. A listener reads COUNT messages, and stops when none comes for so long. For the
 * first message the limit is FIRST_MS. Either prints "first" after its first message, and at its
 * end how many there were and how its stream stands.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "common.h"

#include <inttypes.h>

#define NS_IN_MS INT64_C(1000000)

static void say(const char *what, long count, const onbeat_reservation *r)
{
	printf("%s %ld state %u vlan %u pcp %u static %u code %u bridge ", what, count, r->state,
	       r->vlan, r->pcp, r->is_static, r->failure_code);
	for (int i = 0; i < 8; i++)
		printf("%02x", r->bridge[i]);
	printf("\n");
	fflush(stdout);
}

static int64_t now(onbeat *context)
{
	int64_t now_ns = 0;

	must(onbeat_now(context, &now_ns));
	return now_ns;
}

static void talk(onbeat *context, size_t size, long count, const int64_t limit_ns[2])
{
	onbeat_reservation r;
	onbeat_talker *talker;
	char octets[1500] = {0};
	onbeat_status status = ONBEAT_OK;
	long done = 0;

	must(onbeat_talker_open(context, "c", size, &talker));
	must(onbeat_talker_reservation(talker, sizeof(r), &r));
	say("opened", 0, &r);
	while (count == 0 || done < count) {
		must(onbeat_talker_limit(talker, now(context) + limit_ns[done > 0]));
		status = onbeat_write(talker, octets, NULL);
		if (status != ONBEAT_OK)
			break;
		if (done++ == 0) {
			must(onbeat_talker_reservation(talker, sizeof(r), &r));
			say("first", done, &r);
		}
		must(onbeat_sleep_until(context, now(context) + 2 * NS_IN_MS, NULL));
	}
	must(onbeat_talker_reservation(talker, sizeof(r), &r));
	EXPECT(status == ONBEAT_OK || status == ONBEAT_TIMED_OUT);
	if (status == ONBEAT_TIMED_OUT)
		EXPECT(onbeat_try_write(talker, octets, NULL) == ONBEAT_NOT_RESERVED);
	say(status == ONBEAT_OK ? "done" : "waited", done, &r);
	onbeat_talker_close(talker);
}

static void listen_to(onbeat *context, size_t size, long count, const int64_t limit_ns[2])
{
	onbeat_reservation r;
	onbeat_listener *listener;
	char octets[1500];
	onbeat_status status = ONBEAT_OK;
	long done = 0;

	must(onbeat_listener_open(context, "c", size, &listener));
	must(onbeat_listener_reservation(listener, sizeof(r), &r));
	say("opened", 0, &r);
	while (count == 0 || done < count) {
		status = onbeat_read_timeout(listener, octets, limit_ns[done > 0], NULL);
		if (status != ONBEAT_OK)
			break;
		if (done++ == 0) {
			must(onbeat_listener_reservation(listener, sizeof(r), &r));
			say("first", done, &r);
		}
	}
	must(onbeat_listener_reservation(listener, sizeof(r), &r));
	EXPECT(status == ONBEAT_OK || status == ONBEAT_TIMED_OUT);
	say(status == ONBEAT_OK ? "done" : "waited", done, &r);
	onbeat_listener_close(listener);
}

int main(int argc, char **argv)
{
	EXPECT(argc == 8);
	const onbeat_interface interface = {.name = argv[2], .flags = ONBEAT_RESERVE};
	const uint64_t stream = strtoull(argv[3], NULL, 0);
	const size_t size = strtoul(argv[4], NULL, 0);
	const onbeat_channel channel = {
		.name = "c",
		.destination = {0x91, 0xe0, 0xf0, 0, 0xfe, (uint8_t)stream},
		.stream_id = stream,
		.traffic_class = ONBEAT_CLASS_A,
		.size = (uint32_t)size,
		.interval_ns = NS_IN_MS,
	};
	const long count = atol(argv[5]);
	const int64_t limit_ns[2] = {atol(argv[6]) * NS_IN_MS, atol(argv[7]) * NS_IN_MS};
	onbeat *context;

	must(onbeat_open_interface(&interface, &channel, 1, &context));
	if (strcmp(argv[1], "talk") == 0)
		talk(context, size, count, limit_ns);
	else
		listen_to(context, size, count, limit_ns);
	onbeat_close(context);
	return 0;
}
