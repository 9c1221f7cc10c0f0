/* Writes or reads `c` for as long as the run is, and checks every capture time: message n is
 * captured at n intervals on the talker's clock. Arguments: `talk` or `listen`, the interval. */
#include "common.h"

static int64_t interval_ns;

static void talk(onbeat *run)
{
	onbeat_talker *out;
	int64_t capture_ns;

	must(onbeat_talker_open(run, "c", 8, &out));
	must(onbeat_start(run));
	for (uint64_t i = 0;; i++) {
		if (onbeat_write(out, &i, &capture_ns) != ONBEAT_OK)
			break;
		EXPECT(capture_ns == (int64_t)i * interval_ns);
		if (onbeat_sleep_until(run, capture_ns + interval_ns, NULL) != ONBEAT_OK)
			break;
	}
	onbeat_talker_close(out);
}

static void listen_to(onbeat *run)
{
	onbeat_listener *in;
	onbeat_message message;
	uint64_t value, expected = 0;

	must(onbeat_listener_open(run, "c", 8, &in));
	must(onbeat_start(run));
	for (; onbeat_read(in, &value, &message) == ONBEAT_OK; expected++) {
		EXPECT(value == expected);
		EXPECT(message.sequence == expected);
		EXPECT(message.capture_ns == (int64_t)expected * interval_ns);
		EXPECT(message.gap == 0 && message.flags == 0);
	}
	onbeat_listener_close(in);
}

int main(int count, char **arguments)
{
	onbeat *run;

	EXPECT(count == 3);
	interval_ns = strtoll(arguments[2], NULL, 10);
	must(onbeat_open(&run));
	if (strcmp(arguments[1], "talk") == 0)
		talk(run);
	else
		listen_to(run);
	onbeat_close(run);
	return 0;
}
