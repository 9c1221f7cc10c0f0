/* Writes eight messages at once on `c`, whose burst is eight, and a ninth that is one too many,
 * each eight milliseconds. */
#include "common.h"

#define BURST 8

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
