/* Sends a counter 50 times a second and continues each time together with the listener
 * (Austad et al. 2023, section 4.3.2). SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>

#define PERIOD_NS (20 * 1000 * 1000)

static void must(onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "talker: %s: %s\n", what, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}

int main(void)
{
	onbeat *run;
	onbeat_talker *counter;
	onbeat_status status = ONBEAT_OK;

	must(onbeat_open(&run), "cannot join the run");
	must(onbeat_talker_open(run, "mcast42", sizeof(uint64_t), &counter), "cannot open mcast42");
	must(onbeat_start(run), "cannot start");

	for (uint64_t i = 0; status == ONBEAT_OK; i++) {
		status = onbeat_write_wait(counter, &i, NULL, NULL);
		if (status == ONBEAT_OK)
			status = onbeat_sleep_until(run, (int64_t)(i + 1) * PERIOD_NS, NULL);
	}
	if (status != ONBEAT_STOPPED)
		must(status, "cannot write mcast42");

	onbeat_talker_close(counter);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
