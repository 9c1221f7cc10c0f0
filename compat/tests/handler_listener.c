/* One channel by callback, one read by the program itself. */
#include <netchan.h>

#include "manifest.h"

struct state {
	unsigned long called;
	uint64_t sum;
	bool wrong;
};

static int on_sensor(void *priv_data, struct avtpdu_cshdr *du)
{
	struct state *state = priv_data;
	struct sensor s;
	memcpy(&s, du + 1, sizeof(s));
	state->wrong |= s.val != 3 * s.seqnr + 1 || du->subtype != AVTP_SUBTYPE_NETCHAN;
	state->sum += s.seqnr;
	__atomic_add_fetch(&state->called, 1, __ATOMIC_RELEASE);
	return 0;
}

int main(int argc, char *argv[])
{
	if (argc != 2)
		return 1;
	struct state state = {0};
	struct nethandler *nh = nh_create_init(argv[1], 2, "handler_listener.csv");
	if (!nh || nh_reg_callback(nh, 42, &state, on_sensor) != 0)
		return 2;
	struct channel *sensor = chan_create_rx(nh, &nc_channels[IDX_42]);
	struct channel *value = chan_create_rx(nh, &nc_channels[IDX_17]);
	if (!sensor || !value || nh_get_num_rx(nh) != 2)
		return 3;
	printf("ready\n");
	fflush(stdout);

	uint64_t got = 0, sum = 0;
	while (chan_read_wait(value, &got) == value->payload_size && got != (uint64_t)-1)
		sum += got;
	/* The callback's thread may be behind. */
	for (int i = 0; i < 10000 && __atomic_load_n(&state.called, __ATOMIC_ACQUIRE) < 50; i++)
		if (chan_delay(value, tai_get_ns() + NS_IN_MS) == INT64_MIN)
			break;
	printf("called %lu sum %lu read %lu%s\n", state.called, (unsigned long)state.sum,
	       (unsigned long)sum, state.wrong ? " wrong" : "");
	nh_destroy(&nh);
	return 0;
}
