/* A protection relay. With one channel of samples it is an instantaneous overcurrent relay (ANSI
 * 50), with two, of both ends of a line, a differential relay (87L). It reports a trip when a phase
 * is beyond the limit for several samples in a row.
 *
 * Usage: relay TRIP-CHANNEL NEAR-CHANNEL [FAR-CHANNEL] */
#include "substation.h"

#define OVERCURRENT_MA 3000000
#define DIFFERENTIAL_MA 300000 /* at least, and this much of what flows through: */
#define RESTRAINT_DIVISOR 3
#define OVERCURRENT_SAMPLES 8
#define DIFFERENTIAL_SAMPLES 4
#define WORK_NS (40 * 1000) /* what a sample takes on the target; at most work_max_ns */

/* After a change an event is repeated after 2, 4, 8, … ms, then each second. */
#define REPEAT_FIRST (2 * SAMPLES_PER_SECOND / 1000)
#define REPEAT_MOST SAMPLES_PER_SECOND

/* Whether a phase is beyond the limit of the relay. */
static bool is_beyond(const struct sample *near, const struct sample *far, int phase)
{
	int64_t in = near->current[phase].value, out;

	if (!far)
		return llabs(in) > OVERCURRENT_MA;
	out = far->current[phase].value;
	return llabs(in + out) > DIFFERENTIAL_MA + (llabs(in) + llabs(out)) / RESTRAINT_DIVISOR;
}

/* When an event is due again. */
struct repetition {
	int64_t interval; /* in samples */
	int64_t left;
};

/* Brings the event up to date; whether it is to be sent. */
static bool is_due(struct event *event, struct repetition *next, bool trip, int64_t now_ns)
{
	if (trip != (event->trip != 0) || event->state_number == 0) {
		event->state_number++;
		event->sequence_number = 0;
		event->changed_ns = now_ns;
		event->trip = trip;
		*next = (struct repetition){ REPEAT_FIRST, REPEAT_FIRST };
		return true;
	}
	if (--next->left > 0)
		return false;
	next->interval = next->interval < REPEAT_MOST / 2 ? 2 * next->interval : REPEAT_MOST;
	next->left = next->interval;
	event->sequence_number++;
	return true;
}

/* Reads samples until both ends' are of the same instant, which they are unless one was lost. */
static bool read_both(onbeat_listener *near_end, onbeat_listener *far_end, struct sample *near,
		      struct sample *far)
{
	onbeat_message near_info, far_info;

	if (onbeat_read(near_end, near, &near_info) != ONBEAT_OK)
		return false;
	if (!far_end)
		return true;
	if (onbeat_read(far_end, far, &far_info) != ONBEAT_OK)
		return false;
	while (near->count != far->count) {
		bool is_near_older = near_info.sequence < far_info.sequence;
		enum onbeat_status status =
			is_near_older ? onbeat_read(near_end, near, &near_info)
				      : onbeat_read(far_end, far, &far_info);

		if (status != ONBEAT_OK)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	onbeat *run;
	onbeat_listener *near_end, *far_end = NULL;
	onbeat_talker *trips;
	struct sample near, far;
	struct event event = { 0 };
	struct repetition next = { 0 };
	int beyond[PHASES] = { 0 };
	bool trip = false;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: relay TRIP-CHANNEL NEAR-CHANNEL [FAR-CHANNEL]\n");
		return EXIT_FAILURE;
	}
	must(onbeat_open(&run), "relay: cannot join the run");
	must(onbeat_talker_open(run, argv[1], sizeof(event), &trips), argv[1]);
	must(onbeat_listener_open(run, argv[2], sizeof(near), &near_end), argv[2]);
	if (argc == 4)
		must(onbeat_listener_open(run, argv[3], sizeof(far), &far_end), argv[3]);
	must(onbeat_start(run), "relay: cannot start");

	while (read_both(near_end, far_end, &near, &far)) {
		int needed = far_end ? DIFFERENTIAL_SAMPLES : OVERCURRENT_SAMPLES;
		int64_t now_ns;

		for (int phase = 0; phase < PHASES; phase++) {
			bool is = is_beyond(&near, far_end ? &far : NULL, phase);

			beyond[phase] = is ? beyond[phase] + 1 : 0;
			trip |= beyond[phase] >= needed; /* once tripped, always: it seals in */
		}
		if (onbeat_work(run, WORK_NS) != ONBEAT_OK || onbeat_now(run, &now_ns) != ONBEAT_OK)
			break;
		if (is_due(&event, &next, trip, now_ns) &&
		    onbeat_write(trips, &event, NULL) != ONBEAT_OK)
			break;
	}

	onbeat_listener_close(far_end);
	onbeat_listener_close(near_end);
	onbeat_talker_close(trips);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
