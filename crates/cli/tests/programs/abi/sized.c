/* Structures of other sizes than the library's, in a run: `c` is written, `d` is read.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../common.h"
#include <stddef.h>

enum { MORE = 40, GUARD = 0xa5 };

/* Where version 0.1 has what: programs that were compiled for it look there. */
#define AT(type, field, place) _Static_assert(offsetof(struct type, field) == (place), #field)
AT(onbeat_counters, sent, 0);
AT(onbeat_counters, received, 8);
AT(onbeat_counters, lost, 16);
AT(onbeat_counters, late, 24);
AT(onbeat_counters, duplicate, 32);
AT(onbeat_counters, rate_exceeded, 40);
AT(onbeat_counters, rejected_shape, 48);
AT(onbeat_counters, rejected_stream, 56);
AT(onbeat_counters, rejected_size, 64);
AT(onbeat_counters, rejected_talker, 72);
AT(onbeat_counters, rejected_future, 80);
AT(onbeat_message, capture_ns, 0);
AT(onbeat_message, latency_ns, 8);
AT(onbeat_message, arrived_ns, 16);
AT(onbeat_message, age_ns, 24);
AT(onbeat_message, wakeup_error_ns, 32);
AT(onbeat_message, sequence, 40);
AT(onbeat_message, gap, 48);
AT(onbeat_message, flags, 52);
/* Arrays of it come by a call without a size: it must not grow. */
_Static_assert(sizeof(onbeat_channel) == 64, "onbeat_channel");
AT(onbeat_channel, pcp, 58);
AT(onbeat_interface, log, 56);
AT(onbeat_interface, key_file, 64);
enum { FIRST_COUNTERS = 88, FIRST_MESSAGE = 56 };

/* Whether `size` octets at `got` begin as `all`, continue with zeros, and none behind was
 * touched. */
static void begins(const unsigned char *got, size_t size, const void *all, size_t known)
{
	size_t both = size < known ? size : known;

	EXPECT(memcmp(got, all, both) == 0);
	for (size_t at = both; at < known + MORE; at++)
		EXPECT(got[at] == (at < size ? 0 : GUARD));
}

int main(void)
{
	onbeat *run;
	onbeat_talker *out;
	onbeat_listener *in;
	onbeat_counters of_talker, of_listener;
	onbeat_message message, read;
	unsigned char place[256];
	uint64_t value = 1;

	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", sizeof(value), &out));
	must(onbeat_listener_open(run, "d", sizeof(value), &in));
	must(onbeat_start(run));
	memset(place, GUARD, sizeof(place));
	EXPECT(onbeat_listener_message(in, sizeof(message), (void *)place) == ONBEAT_EMPTY);
	begins(place, 0, "", 0);

	must(onbeat_write(out, &value, NULL));
	memset(place, GUARD, sizeof(place));
	must(onbeat_read(in, &value, (void *)place));
	memcpy(&read, place, sizeof(read));
	begins(place, FIRST_MESSAGE, &read, FIRST_MESSAGE);
	must(onbeat_talker_counters_sized(out, sizeof(of_talker), &of_talker));
	must(onbeat_listener_counters_sized(in, sizeof(of_listener), &of_listener));
	must(onbeat_listener_message(in, sizeof(message), &message));
	EXPECT(of_talker.sent == 1 && of_talker.received == 0);
	EXPECT(of_listener.sent == 0 && of_listener.received == 1);
	EXPECT(message.sequence == 0 && message.latency_ns > 0);
	EXPECT(memcmp(&message, &read, FIRST_MESSAGE) == 0);

	for (size_t size = 0; size <= sizeof(of_talker) + MORE; size++) {
		memset(place, GUARD, sizeof(place));
		must(onbeat_talker_counters_sized(out, size, (void *)place));
		begins(place, size, &of_talker, sizeof(of_talker));
		memset(place, GUARD, sizeof(place));
		must(onbeat_listener_counters_sized(in, size, (void *)place));
		begins(place, size, &of_listener, sizeof(of_listener));
		memset(place, GUARD, sizeof(place));
		must(onbeat_listener_message(in, size, (void *)place));
		if (size <= sizeof(message) + MORE)
			begins(place, size, &message, sizeof(message));
	}
	memset(place, GUARD, sizeof(place));
	must(onbeat_talker_counters(out, (void *)place));
	begins(place, FIRST_COUNTERS, &of_talker, FIRST_COUNTERS);
	memset(place, GUARD, sizeof(place));
	must(onbeat_listener_counters(in, (void *)place));
	begins(place, FIRST_COUNTERS, &of_listener, FIRST_COUNTERS);

	onbeat_talker_close(out);
	onbeat_listener_close(in);
	onbeat_close(run);
	return 0;
}
