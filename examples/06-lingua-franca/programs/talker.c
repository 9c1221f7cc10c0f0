/* The sensor reactor as a program of its own: a value every 100 ms over a channel
 * (Austad and Mathisen 2023, section 4.4). SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "sensor_data.h"
#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>

#define PERIOD_NS (100 * 1000 * 1000)

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
	onbeat_talker *sensor;

	must(onbeat_open(&run), "cannot join the run");
	must(onbeat_talker_open(run, "sensor_data", sizeof(struct sensor_data), &sensor),
	     "cannot open sensor_data");
	must(onbeat_start(run), "cannot start");

	for (uint64_t i = 0;; i++) {
		struct sensor_data data = { .number = i, .captured_ns = (int64_t)i * PERIOD_NS };

		if (onbeat_write(sensor, &data, NULL) != ONBEAT_OK)
			break;
		if (onbeat_sleep_until(run, (int64_t)(i + 1) * PERIOD_NS, NULL) != ONBEAT_OK)
			break;
	}

	onbeat_talker_close(sensor);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
