/* What the three programs of the robot arm share. SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>

#define JOINTS 6
#define PERIOD_NS (1000 * 1000)

/* Sensor to controller: joint angles in microradians. */
struct pose {
	int64_t angle_urad[JOINTS];
};

/* Controller to actuator: angular velocities in microradians a second. */
struct command {
	int64_t velocity_urad_s[JOINTS];
};

/* Actuator to controller. */
struct status {
	uint64_t cycle;
	uint64_t saturated; /* joints whose command was beyond what the motor can do */
};

static inline void must(onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "%s: %s\n", what, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}
