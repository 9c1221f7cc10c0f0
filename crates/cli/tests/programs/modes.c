/* Two hosts that send in modes of a third one. `modes panel`: the mode is 1 and 2 in turn, for
 * 200 ms each. `modes CHANNEL VALUE`: answers each mode of this value with a message, which is the
 * count of these. `modes arm`: reads both until the run is over. */
#include "common.h"
#include <arpa/inet.h>

#define SWITCH 200

static onbeat *run;

static void panel(void)
{
	onbeat_talker *out;

	must(onbeat_talker_open(run, "mode", 8, &out));
	must(onbeat_start(run));
	for (uint32_t i = 0;; i++) {
		uint32_t words[2] = { htonl(1 + i / SWITCH % 2), i };

		if (onbeat_write(out, words, NULL) != ONBEAT_OK)
			break;
		if (onbeat_sleep_until(run, (int64_t)(i + 1) * PERIOD_NS, NULL) != ONBEAT_OK)
			break;
	}
	onbeat_talker_close(out);
}

static void hand(const char *channel, uint32_t value)
{
	onbeat_listener *in;
	onbeat_talker *out;
	uint32_t words[2];
	uint64_t count = 0;

	must(onbeat_listener_open(run, "mode", 8, &in));
	must(onbeat_talker_open(run, channel, 8, &out));
	must(onbeat_start(run));
	while (onbeat_read(in, words, NULL) == ONBEAT_OK) {
		if (ntohl(words[0]) != value)
			continue;
		count++;
		/* The rate is that of modes, which may come a little early. */
		if (onbeat_write(out, &count, NULL) < 0)
			break;
	}
	onbeat_talker_close(out);
	onbeat_listener_close(in);
}

static void arm(void)
{
	onbeat_listener *both[2];
	uint64_t value, last[2] = { 0, 0 };
	size_t which;

	must(onbeat_listener_open(run, "force", 8, &both[0]));
	must(onbeat_listener_open(run, "position", 8, &both[1]));
	must(onbeat_start(run));
	while (onbeat_select(run, (const onbeat_listener *const *)both, 2, -1, &which) == ONBEAT_OK) {
		if (onbeat_try_read(both[which], &value, NULL) != ONBEAT_OK)
			continue;
		EXPECT(value > last[which]);
		last[which] = value;
	}
	onbeat_listener_close(both[0]);
	onbeat_listener_close(both[1]);
}

int main(int count, char **arguments)
{
	EXPECT(count > 1);
	must(onbeat_open(&run));
	if (strcmp(arguments[1], "panel") == 0)
		panel();
	else if (strcmp(arguments[1], "arm") == 0)
		arm();
	else
		hand(arguments[1], (uint32_t)atoi(arguments[2]));
	onbeat_close(run);
	return 0;
}
