/* The logic reactor as a program of its own: takes each value 2 ms after its capture
 * (Austad and Mathisen 2023, section 4.4). SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "sensor_data.h"
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
	onbeat_listener *sensor;
	onbeat_message message;
	struct sensor_data data;

	must(onbeat_open(&run), "cannot join the run");
	must(onbeat_listener_open(run, "sensor_data", sizeof(data), &sensor),
	     "cannot open sensor_data");
	must(onbeat_start(run), "cannot start");

	while (onbeat_read_wait(sensor, &data, &message) == ONBEAT_OK) {
		/* The library numbers messages too: both counts must agree. */
		if (data.number != message.sequence) {
			fprintf(stderr, "listener: message %llu carries %llu\n",
				(unsigned long long)message.sequence,
				(unsigned long long)data.number);
			return EXIT_FAILURE;
		}
	}

	onbeat_listener_close(sensor);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
