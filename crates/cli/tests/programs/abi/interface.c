/* Structures of other sizes that say how to open an interface. Exits with 77 where it may not use
 * `lo`. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../common.h"
#include <stddef.h>

/* Where version 0.1 has what. */
#define AT(type, field, place) _Static_assert(offsetof(struct type, field) == (place), #field)
#if UINTPTR_MAX > 0xffffffff
AT(onbeat_interface, name, 0);
AT(onbeat_interface, transport, 8);
AT(onbeat_interface, flags, 12);
AT(onbeat_interface, queue, 16);
AT(onbeat_interface, socket_priority, 20);
AT(onbeat_interface, epoch_ns, 32);
AT(onbeat_interface, clock_error_ns, 40);
AT(onbeat_interface, break_ns, 48);
AT(onbeat_interface, log, 56);
AT(onbeat_channel, name, 0);
AT(onbeat_channel, destination, 8);
AT(onbeat_channel, stream_id, 16);
AT(onbeat_channel, traffic_class, 24);
AT(onbeat_channel, size, 28);
AT(onbeat_channel, burst, 32);
AT(onbeat_channel, interval_ns, 40);
AT(onbeat_channel, fixed_delay_ns, 48);
AT(onbeat_channel, vlan, 56);
AT(onbeat_channel, pcp, 58);
#endif

struct later_interface {
	onbeat_interface known;
	uint64_t more[2];
};

struct later_channel {
	onbeat_channel known;
	uint64_t more[2];
};

/* A version before 0.1, so to speak: VLAN and priority are the usual ones. */
struct earlier_channel {
	char octets[offsetof(onbeat_channel, fixed_delay_ns)];
};

static onbeat_channel channel(const char *name, uint64_t stream_id)
{
	return (onbeat_channel){
		.name = name,
		.destination = { 0x01, 0x00, 0x5e, 0x0c, 0x9a, (uint8_t)stream_id },
		.stream_id = stream_id,
		.size = 8,
		.interval_ns = PERIOD_NS,
	};
}

static void refused(onbeat_status status, const char *why)
{
	if (status != ONBEAT_E_ARGUMENT || strcmp(onbeat_last_error(), why)) {
		fprintf(stderr, "%d %s\n", (int)status, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}

/* What is wrong is found before the interface is looked for. */
static void of_no_interface(void)
{
	struct later_interface later = { .known = { .name = "nosuch0" } };
	onbeat *none;

	EXPECT(onbeat_open_interface(&later.known, NULL, 0, &none) == ONBEAT_E_NETWORK);
	EXPECT(onbeat_open_interface_sized(&later.known, sizeof(later), NULL, 0, 0, &none)
	       == ONBEAT_E_NETWORK);
	later.more[1] = 1;
	EXPECT(onbeat_open_interface(&later.known, NULL, 0, &none) == ONBEAT_E_NETWORK);
	refused(onbeat_open_interface_sized(&later.known, sizeof(later), NULL, 0, 0, &none),
		"`interface` has fields of a later version that are not 0");
	refused(onbeat_open_interface_sized(&later.known, 0, NULL, 0, 0, &none),
		"`interface->name` is NULL");
	refused(onbeat_open_interface_sized(&later.known, 12, NULL, 0, 0, &none),
		"`interface` has 12 octets: no version's has");
	/* Behind the size nothing is looked at. */
	later.known.flags = UINT32_MAX;
	EXPECT(onbeat_open_interface_sized(&later.known, sizeof(later.known.name), NULL, 0, 0, &none)
	       == ONBEAT_E_NETWORK);
}

static void opens(onbeat *context, const char *name)
{
	onbeat_talker *talker;

	must(onbeat_talker_open(context, name, 8, &talker));
	onbeat_talker_close(talker);
}

/* A listener that was opened before its talker was named takes what `lo`, which has no address,
 * sends; one that was opened afterwards counts it. */
static void names_talker(onbeat *context, const char *name)
{
	const uint8_t station[6] = { 2, 0, 0, 0, 0, 1 }, group[6] = { 3 }, none[6] = { 0 };
	onbeat_counters counters = { 0 };
	onbeat_listener *before, *after;
	onbeat_talker *talker;
	uint64_t value = 7;

	EXPECT(onbeat_name_talker(context, name, group) == ONBEAT_E_REFUSED);
	EXPECT(onbeat_name_talker(context, name, none) == ONBEAT_E_REFUSED);
	EXPECT(onbeat_name_talker(context, "nosuch", station) == ONBEAT_E_REFUSED);
	must(onbeat_listener_open(context, name, sizeof(value), &before));
	must(onbeat_name_talker(context, name, station));
	must(onbeat_listener_open(context, name, sizeof(value), &after));
	must(onbeat_talker_open(context, name, sizeof(value), &talker));
	must(onbeat_write(talker, &value, NULL));
	value = 0;
	must(onbeat_read_wait(before, &value, NULL));
	EXPECT(value == 7);
	/* The one of before has it: it has been on the wire. */
	while (counters.rejected_talker == 0) {
		EXPECT(onbeat_read_latest(after, &value, NULL) == ONBEAT_EMPTY);
		must(onbeat_listener_counters(after, &counters));
	}
	EXPECT(counters.rejected_talker == 1 && counters.received == 0);
	onbeat_talker_close(talker);
	onbeat_listener_close(before);
	onbeat_listener_close(after);
}

int main(void)
{
	const onbeat_interface lo = { .name = "lo", .flags = ONBEAT_UNTAGGED };
	struct later_channel later[] = { { .known = channel("a", 1) }, { .known = channel("b", 2) } };
	const onbeat_channel same[] = { channel("e", 5), channel("f", 6) };
	struct earlier_channel earlier[2];
	onbeat *context;

	of_no_interface();
	for (int at = 0; at < 2; at++) {
		const onbeat_channel row = channel(at ? "d" : "c", 3 + at);

		memcpy(&earlier[at], &row, sizeof(earlier[at]));
	}
	onbeat_status status = onbeat_open_interface_sized(&lo, sizeof(lo), &later[0].known,
							   sizeof(later[0]), 2, &context);
	if (status == ONBEAT_E_NETWORK) {
		fprintf(stderr, "%s\n", onbeat_last_error());
		return 77;
	}
	must(status);
	opens(context, "a");
	opens(context, "b");
	must(onbeat_declare_sized(context, (const void *)&earlier[0], sizeof(earlier[0])));
	opens(context, "c");
	later[0].known = channel("g", 7);
	must(onbeat_declare_sized(context, &later[0].known, sizeof(later[0])));
	later[0].more[0] = 1;
	refused(onbeat_declare_sized(context, &later[0].known, sizeof(later[0])),
		"`channel` has fields of a later version that are not 0");
	onbeat_close(context);

	must(onbeat_open_interface_sized(&lo, sizeof(lo), (const void *)earlier, sizeof(earlier[0]),
					 2, &context));
	opens(context, "c");
	opens(context, "d");
	onbeat_close(context);
	later[1].more[1] = 1;
	later[0].more[0] = 0;
	refused(onbeat_open_interface_sized(&lo, sizeof(lo), &later[0].known, sizeof(later[0]), 2,
					    &context),
		"`channels[1]` has fields of a later version that are not 0");
	must(onbeat_open_interface(&lo, same, 2, &context));
	opens(context, "e");
	opens(context, "f");
	names_talker(context, "e");
	onbeat_close(context);
	return 0;
}
