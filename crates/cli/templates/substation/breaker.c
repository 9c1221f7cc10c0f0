/* The line's circuit breaker: opens at the first trip of a relay, and says when each relay's came.
 *
 * Usage: breaker TRIP-CHANNEL... */
#include "substation.h"

#define RELAYS_MAX 8

/* What is known of one relay. */
struct relay {
	onbeat_listener *trips;
	uint32_t state_number;
	bool tripped;
};

/* Takes what has come from a relay. Repetitions say nothing new. */
static enum onbeat_status take(onbeat *run, struct relay *relay, const char *name, bool *open)
{
	struct event event;
	enum onbeat_status status = onbeat_try_read(relay->trips, &event, NULL);
	int64_t now_ns;

	if (status != ONBEAT_OK || event.state_number == relay->state_number)
		return status;
	relay->state_number = event.state_number;
	if (!event.trip || relay->tripped)
		return status;
	status = onbeat_now(run, &now_ns);
	relay->tripped = true;
	printf("breaker: %s at %lld µs%s\n", name, (long long)(now_ns / 1000),
	       *open ? "" : ": opening");
	*open = true;
	return status;
}

int main(int argc, char **argv)
{
	onbeat *run;
	struct relay relays[RELAYS_MAX] = { 0 };
	const onbeat_listener *all[RELAYS_MAX];
	size_t count = (size_t)argc - 1, index;
	enum onbeat_status status = ONBEAT_OK;
	bool open = false;

	if (argc < 2 || count > RELAYS_MAX) {
		fprintf(stderr, "usage: breaker TRIP-CHANNEL... (at most %d)\n", RELAYS_MAX);
		return EXIT_FAILURE;
	}
	must(onbeat_open(&run), "breaker: cannot join the run");
	for (size_t i = 0; i < count; i++) {
		must(onbeat_listener_open(run, argv[i + 1], sizeof(struct event),
					  &relays[i].trips), argv[i + 1]);
		all[i] = relays[i].trips;
	}
	must(onbeat_start(run), "breaker: cannot start");

	while (status == ONBEAT_OK || status == ONBEAT_EMPTY) {
		status = onbeat_select(run, all, count, -1, &index);
		if (status == ONBEAT_OK)
			status = take(run, &relays[index], argv[index + 1], &open);
	}
	if (!open)
		printf("breaker: closed to the end\n");

	for (size_t i = 0; i < count; i++)
		onbeat_listener_close(relays[i].trips);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
