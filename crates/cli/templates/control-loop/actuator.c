/* Applies each torque, and tells the simulated motor of it. Replace the write to `shaft` by the
 * code that sets your inverter. */
#include "loop.h"

int main(void)
{
	onbeat *run;
	onbeat_listener *torques;
	onbeat_talker *shaft;
	struct torque torque;

	must(onbeat_open(&run), "actuator: cannot join the run");
	must(onbeat_listener_open(run, "torque", sizeof(torque), &torques), "actuator: torque");
	must(onbeat_talker_open(run, "shaft", sizeof(torque), &shaft), "actuator: shaft");
	must(onbeat_start(run), "actuator: cannot start");

	while (onbeat_read(torques, &torque, NULL) == ONBEAT_OK)
		if (onbeat_write(shaft, &torque, NULL) != ONBEAT_OK)
			break;

	onbeat_talker_close(shaft);
	onbeat_listener_close(torques);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
