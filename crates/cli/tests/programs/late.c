/* A listener of `c` that is opened by an instant, in milliseconds, or never: -1. It selects, and
 * says how many messages it read, how many were missing before them, and how it ended.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "common.h"

int main(int argc, char **argv)
{
	int64_t at = (int64_t)atoi(argv[argc - 1]) * 1000000;
	onbeat_listener *listener = NULL;
	int count = 0, gaps = 0, status;
	onbeat_message message;
	uint64_t value;
	onbeat *run;
	size_t which;

	EXPECT(onbeat_open(&run) == ONBEAT_OK);
	if (at == 0)
		EXPECT(onbeat_listener_open(run, "c", 8, &listener) == ONBEAT_OK);
	EXPECT(onbeat_start(run) == ONBEAT_OK);
	if (at > 0) {
		EXPECT(onbeat_sleep_until(run, at, NULL) == ONBEAT_OK);
		EXPECT(onbeat_listener_open(run, "c", 8, &listener) == ONBEAT_OK);
	}
	if (at < 0) {
		status = onbeat_sleep_until(run, INT64_MAX, NULL);
	} else {
		const onbeat_listener *const ends[] = {listener};

		while ((status = onbeat_select(run, ends, 1, -1, &which)) == ONBEAT_OK) {
			/* What it is told of is there. */
			EXPECT(onbeat_try_read(listener, &value, &message) == ONBEAT_OK);
			count++;
			gaps += message.gap;
		}
		onbeat_listener_close(listener);
	}
	fprintf(stderr, "late: %d read, %d missing, status %d\n", count, gaps, status);
	onbeat_close(run);
	return status == ONBEAT_STOPPED ? 0 : 1;
}
