/* Reads the joint angles, here a slow triangle, and sends them every millisecond.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "arm.h"

static int64_t triangle(int64_t cycle, int64_t period)
{
	int64_t at = cycle % (2 * period);

	return at < period ? at : 2 * period - at;
}

int main(void)
{
	onbeat *run;
	onbeat_talker *out;

	must(onbeat_open(&run), "sensor: cannot join the run");
	must(onbeat_talker_open(run, "pose", sizeof(struct pose), &out), "sensor: pose");
	must(onbeat_start(run), "sensor: cannot start");

	for (int64_t cycle = 0;; cycle++) {
		struct pose pose;

		for (int joint = 0; joint < JOINTS; joint++)
			pose.angle_urad[joint] = 100 * triangle(cycle, 500 + 100 * joint);
		if (onbeat_write(out, &pose, NULL) != ONBEAT_OK)
			break;
		if (onbeat_sleep_until(run, (cycle + 1) * PERIOD_NS, NULL) != ONBEAT_OK)
			break;
	}

	onbeat_talker_close(out);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
