/* The PLC's cycle: counts parts at the light barrier, and pushes every third off the belt. */
#include "image.h"

#define EVERY 3
#define STROKE_CYCLES 40 /* how long the pusher is driven forward */
#define WORK_NS (50 * 1000) /* what a cycle takes on the target; at most work_max_ns */

/* What the PLC remembers from cycle to cycle. */
struct state {
	uint32_t before; /* the inputs of the last cycle */
	int64_t parts;
	int stroke; /* cycles until the pusher goes back */
};

/* One cycle: the outputs for these inputs. */
static uint32_t cycle(struct state *state, uint32_t inputs)
{
	uint32_t rising = inputs & ~state->before;

	state->before = inputs;
	if (rising & BARRIER && ++state->parts % EVERY == 0 && inputs & RETRACTED)
		state->stroke = STROKE_CYCLES;
	if (state->stroke == 0)
		return 0;
	state->stroke--;
	return PUSH;
}

int main(void)
{
	onbeat *run;
	onbeat_listener *inputs;
	onbeat_talker *outputs;
	struct state state = { 0 };
	struct image image;

	must(onbeat_open(&run), "plc: cannot join the run");
	must(onbeat_listener_open(run, "inputs", sizeof(image), &inputs), "plc: inputs");
	must(onbeat_talker_open(run, "outputs", sizeof(image), &outputs), "plc: outputs");
	must(onbeat_start(run), "plc: cannot start");

	while (onbeat_read(inputs, &image, NULL) == ONBEAT_OK) {
		image.bits = cycle(&state, image.bits);
		if (onbeat_work(run, WORK_NS) != ONBEAT_OK)
			break;
		if (onbeat_write(outputs, &image, NULL) != ONBEAT_OK)
			break;
	}
	printf("plc: %lld parts at the barrier\n", (long long)state.parts);

	onbeat_talker_close(outputs);
	onbeat_listener_close(inputs);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
