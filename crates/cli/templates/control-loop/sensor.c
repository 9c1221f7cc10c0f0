/* Samples the motor's speed every millisecond. The motor is simulated here: a rotor of 1 g·m² with
 * viscous friction, and a load that is coupled after one second. Replace advance() by the code that
 * reads your encoder, and delete channel `shaft`. */
#include "loop.h"

#define LOAD_MNM 500
#define LOAD_FROM_NS (1000LL * 1000 * 1000)
#define FRICTION_DIVISOR 2000 /* 1 mN·m for each 2 rad/s */

/* The speed after one more millisecond: at this inertia 1 mN·m adds 1 mrad/s. */
static int64_t advance(int64_t mrad_s, int64_t torque_mnm, int64_t now_ns)
{
	int64_t load = now_ns >= LOAD_FROM_NS ? LOAD_MNM : 0;

	return mrad_s + torque_mnm - load - mrad_s / FRICTION_DIVISOR;
}

int main(void)
{
	onbeat *run;
	onbeat_talker *speeds;
	onbeat_listener *shaft;
	struct torque applied = { 0 };
	struct speed speed = { 0 };

	must(onbeat_open(&run), "sensor: cannot join the run");
	must(onbeat_talker_open(run, "speed", sizeof(speed), &speeds), "sensor: speed");
	must(onbeat_listener_open(run, "shaft", sizeof(applied), &shaft), "sensor: shaft");
	must(onbeat_start(run), "sensor: cannot start");

	while (onbeat_write(speeds, &speed, NULL) == ONBEAT_OK) {
		int64_t next_ns = ++speed.sample * PERIOD_NS;

		if (onbeat_sleep_until(run, next_ns, NULL) != ONBEAT_OK)
			break;
		while (onbeat_try_read(shaft, &applied, NULL) == ONBEAT_OK)
			; /* the newest torque is the one that acts */
		speed.mrad_s = advance(speed.mrad_s, applied.mnm, next_ns);
	}

	onbeat_listener_close(shaft);
	onbeat_talker_close(speeds);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
