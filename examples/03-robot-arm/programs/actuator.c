/* Drives the motors, within what they can do, and reports how that went.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "arm.h"

#define LIMIT_URAD_S 300000

int main(void)
{
	onbeat *run;
	onbeat_listener *commands;
	onbeat_talker *states;
	struct command command;
	struct status status = { 0 };

	must(onbeat_open(&run), "actuator: cannot join the run");
	must(onbeat_listener_open(run, "command", sizeof(command), &commands), "actuator: command");
	must(onbeat_talker_open(run, "status", sizeof(status), &states), "actuator: status");
	must(onbeat_start(run), "actuator: cannot start");

	while (onbeat_read(commands, &command, NULL) == ONBEAT_OK) {
		status.cycle++;
		status.saturated = 0;
		for (int joint = 0; joint < JOINTS; joint++)
			if (llabs(command.velocity_urad_s[joint]) > LIMIT_URAD_S)
				status.saturated++;
		if (onbeat_write(states, &status, NULL) != ONBEAT_OK)
			break;
	}

	onbeat_talker_close(states);
	onbeat_listener_close(commands);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
