/* Reads the talker's counter and continues each time together with the talker
 * (Austad et al. 2023, section 4.3.3). SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>

static void must(onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "listener: %s: %s\n", what, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}

int main(void)
{
	onbeat *run;
	onbeat_listener *counter;
	uint64_t expected = 0, value;
	onbeat_message message;

	must(onbeat_open(&run), "cannot join the run");
	must(onbeat_listener_open(run, "mcast42", sizeof(value), &counter), "cannot open mcast42");
	must(onbeat_start(run), "cannot start");

	while (onbeat_read_wait(counter, &value, &message) == ONBEAT_OK) {
		/* The library numbers messages too: both counts must agree. */
		if (value != message.sequence || value < expected) {
			fprintf(stderr, "listener: message %llu carries %llu\n",
				(unsigned long long)message.sequence, (unsigned long long)value);
			return EXIT_FAILURE;
		}
		expected = value + 1;
	}

	onbeat_listener_close(counter);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
