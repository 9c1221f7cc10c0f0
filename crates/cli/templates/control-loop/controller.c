/* Answers each speed with a torque: a PI controller in integers, with anti-windup. */
#include "loop.h"

#define TARGET_MRAD_S 150000
#define LIMIT_MNM 2000
#define P_DIVISOR 8    /* mrad/s for 1 mN·m */
#define I_DIVISOR 512  /* mrad/s, summed each period, for 1 mN·m */
#define WORK_NS (80 * 1000) /* what the control law takes on the target; at most work_max_ns */
#define SETTLED_MRAD_S (TARGET_MRAD_S / 100)

static int64_t control(int64_t speed_mrad_s, int64_t *sum)
{
	int64_t error = TARGET_MRAD_S - speed_mrad_s;
	int64_t torque = error / P_DIVISOR + (*sum + error) / I_DIVISOR;

	/* At its limit the sum stays: it would only have to be undone later. */
	if (torque > LIMIT_MNM)
		return LIMIT_MNM;
	if (torque < -LIMIT_MNM)
		return -LIMIT_MNM;
	*sum += error;
	return torque;
}

int main(void)
{
	onbeat *run;
	onbeat_listener *speeds;
	onbeat_talker *torques;
	struct speed speed;
	int64_t sum = 0, settled = -1, last = 0;

	must(onbeat_open(&run), "controller: cannot join the run");
	must(onbeat_listener_open(run, "speed", sizeof(speed), &speeds), "controller: speed");
	must(onbeat_talker_open(run, "torque", sizeof(struct torque), &torques),
	     "controller: torque");
	must(onbeat_start(run), "controller: cannot start");

	while (onbeat_read(speeds, &speed, NULL) == ONBEAT_OK) {
		struct torque torque = { speed.sample, control(speed.mrad_s, &sum) };

		last = speed.mrad_s;
		if (llabs(TARGET_MRAD_S - last) > SETTLED_MRAD_S)
			settled = -1;
		else if (settled < 0)
			settled = speed.sample;
		if (onbeat_work(run, WORK_NS) != ONBEAT_OK)
			break;
		if (onbeat_write(torques, &torque, NULL) != ONBEAT_OK)
			break;
	}
	if (settled < 0)
		printf("controller: not settled; the last speed was %lld mrad/s\n", (long long)last);
	else
		printf("controller: within 1 %% of the target since sample %lld, at last %lld mrad/s\n",
		       (long long)settled, (long long)last);

	onbeat_talker_close(torques);
	onbeat_listener_close(speeds);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
