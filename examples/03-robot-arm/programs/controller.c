/* Answers each pose with a command: proportional control, slower while the actuator saturates.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "arm.h"

#define TARGET_URAD 25000
#define WORK_NS (80 * 1000) /* what the control law takes on the target, at most 100 µs */

int main(void)
{
	onbeat *run;
	onbeat_listener *poses, *states;
	onbeat_talker *commands;
	struct status status = { 0 };
	struct pose pose;

	must(onbeat_open(&run), "controller: cannot join the run");
	must(onbeat_listener_open(run, "pose", sizeof(pose), &poses), "controller: pose");
	must(onbeat_listener_open(run, "status", sizeof(status), &states), "controller: status");
	must(onbeat_talker_open(run, "command", sizeof(struct command), &commands),
	     "controller: command");
	must(onbeat_start(run), "controller: cannot start");

	while (onbeat_read(poses, &pose, NULL) == ONBEAT_OK) {
		struct command command;

		while (onbeat_try_read(states, &status, NULL) == ONBEAT_OK)
			; /* the newest status is the one that counts */
		for (int joint = 0; joint < JOINTS; joint++) {
			int64_t gain = status.saturated ? 4 : 8;

			command.velocity_urad_s[joint] =
				gain * (TARGET_URAD - pose.angle_urad[joint]);
		}
		if (onbeat_work(run, WORK_NS) != ONBEAT_OK)
			break;
		if (onbeat_write(commands, &command, NULL) != ONBEAT_OK)
			break;
	}

	onbeat_talker_close(commands);
	onbeat_listener_close(states);
	onbeat_listener_close(poses);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
