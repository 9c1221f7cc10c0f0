/* Writes eight messages at once on `c`, whose burst is eight, and a ninth that is one too many,
 * each eight milliseconds: by turns in one call, and one by one. */
#include "common.h"

#define BURST 8

/* The nine in one call; `value` is the first. False: the run is over. */
static int together(onbeat_talker *out, int64_t at_ns, uint64_t value)
{
	uint64_t values[BURST + 1];
	int64_t capture_ns[BURST + 1];
	size_t written;

	for (int i = 0; i <= BURST; i++)
		values[i] = value + i;
	onbeat_status status = onbeat_try_write_many(out, values, BURST + 1, &written, capture_ns);
	if (status == ONBEAT_STOPPED)
		return 0;
	EXPECT(status == ONBEAT_RATE_EXCEEDED && written == BURST);
	for (int i = 0; i < BURST; i++)
		EXPECT(capture_ns[i] == at_ns + i);
	EXPECT(capture_ns[BURST] > at_ns + BURST);
	return 1;
}

int main(void)
{
	onbeat *run;
	onbeat_talker *out;
	int64_t capture_ns, last_ns = -1;
	uint64_t value = 0;

	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", 8, &out));
	must(onbeat_start(run));
	for (int64_t at_ns = 0;; at_ns += BURST * PERIOD_NS) {
		must(onbeat_sleep_until(run, at_ns, NULL));
		if (at_ns / (BURST * PERIOD_NS) % 2) {
			if (!together(out, at_ns, value))
				break;
			value += BURST;
			last_ns = at_ns + BURST - 1;
			continue;
		}
		if (onbeat_try_write(out, &value, &capture_ns) == ONBEAT_STOPPED)
			break;
		for (int i = 0; i < BURST; i++, value++) {
			if (i > 0)
				must(onbeat_try_write(out, &value, &capture_ns));
			EXPECT(capture_ns > last_ns);
			EXPECT(capture_ns < at_ns + BURST);
			last_ns = capture_ns;
		}
		EXPECT(onbeat_try_write(out, &value, &capture_ns) == ONBEAT_RATE_EXCEEDED);
	}
	onbeat_talker_close(out);
	onbeat_close(run);
	return 0;
}
