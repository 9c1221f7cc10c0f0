/* Meets the program on the other host again and again: meet left|right DELAY_US. Prints where each
 * meeting was, in network time. */
#include <onbeat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int left = argc > 1 && strncmp(argv[1], "left", 4) == 0;
	int64_t delay = argc > 1 ? atoll(argv[1] + (left ? 4 : 5)) * 1000 : 0;
	onbeat *context;
	onbeat_talker *talker;
	onbeat_listener *listener;
	uint64_t round = 0, other;
	onbeat_message message;
	FILE *out = fopen(left ? "left.txt" : "right.txt", "w");

	if (!out || onbeat_open(&context) != ONBEAT_OK ||
	    onbeat_talker_open(context, left ? "c" : "back", 8, &talker) != ONBEAT_OK ||
	    onbeat_listener_open(context, left ? "back" : "c", 8, &listener) != ONBEAT_OK ||
	    onbeat_start(context) != ONBEAT_OK) {
		fprintf(stderr, "%s\n", onbeat_last_error());
		return 1;
	}
	onbeat_sleep_until(context, delay, NULL);
	for (uint32_t random = left ? 7 : 13;; round++) {
		random = random * 1664525u + 1013904223u;
		onbeat_work(context, random % 3000000);
		if (onbeat_rendezvous(talker, &round, listener, &other, &message) != ONBEAT_OK)
			break;
		int64_t now;
		onbeat_now(context, &now);
		fprintf(out, "%jd %jd\n", (intmax_t)now, (intmax_t)message.wakeup_error_ns);
	}
	fclose(out);
	onbeat_talker_close(talker);
	onbeat_listener_close(listener);
	onbeat_close(context);
	return 0;
}
