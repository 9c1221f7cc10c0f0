/* Reads `c` in every way there is. */
#include "common.h"

int main(void)
{
	onbeat *run;
	onbeat_listener *in;
	onbeat_message message;
	uint64_t value;
	int64_t before, after;

	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", sizeof(value), &in));
	must(onbeat_start(run));

	value = 77;
	EXPECT(onbeat_try_read(in, &value, &message) == ONBEAT_EMPTY);
	EXPECT(value == 77);
	must(onbeat_read(in, &value, &message));
	EXPECT(value == 0 && message.sequence == 0 && message.gap == 0);
	EXPECT(message.latency_ns > 0 && message.flags == 0);

	/* The next one is a millisecond away. */
	must(onbeat_now(run, &before));
	EXPECT(onbeat_read_timeout(in, &value, 300 * 1000, &message) == ONBEAT_TIMED_OUT);
	must(onbeat_now(run, &after));
	EXPECT(after - before == 300 * 1000);
	must(onbeat_read_timeout(in, &value, PERIOD_NS, &message));
	EXPECT(value == 1);

	/* While this one waits for the fixed delay of 2 ms, two more arrive. */
	must(onbeat_read_wait(in, &value, &message));
	must(onbeat_now(run, &after));
	EXPECT(value == 2 && message.wakeup_error_ns == 0);
	EXPECT(after == message.capture_ns + 2 * PERIOD_NS);
	must(onbeat_try_read(in, &value, &message));
	EXPECT(value == 3);
	must(onbeat_now(run, &after));
	EXPECT(message.capture_ns + message.latency_ns < after);
	must(onbeat_read(in, &value, &message));
	EXPECT(value == 4);

	while (onbeat_read(in, &value, &message) == ONBEAT_OK)
		EXPECT(value == message.sequence);
	onbeat_listener_close(in);
	onbeat_close(run);
	return 0;
}
