/* The remote I/O: samples the inputs each cycle and applies the outputs. Belt, barrier and pusher
 * are simulated here; replace line() by the code that reads and sets your terminals. */
#include "image.h"

#define PART_EVERY 120 /* cycles from one part's arrival at the barrier to the next one's */
#define PART_LENGTH 30 /* cycles that a part takes to pass it */
#define PUSHER_AFTER 20 /* cycles from the barrier to the pusher */
#define STROKE 10 /* cycles that the pusher needs from stop to stop */

/* The simulated line. */
struct line {
	int pusher; /* 0 at the rear stop, STROKE at the front stop */
	int64_t pushed;
	int64_t passed;
};

/* The line in a cycle, with these outputs: its inputs. */
static uint32_t line(struct line *line, int64_t cycle, uint32_t outputs)
{
	int64_t at = cycle % PART_EVERY;

	if (outputs & PUSH)
		line->pusher += line->pusher < STROKE;
	else
		line->pusher -= line->pusher > 0;
	if (cycle >= PART_EVERY && at == PUSHER_AFTER) {
		if (line->pusher == STROKE)
			line->pushed++;
		else
			line->passed++;
	}
	return (cycle >= PART_EVERY && at < PART_LENGTH ? BARRIER : 0) |
	       (line->pusher == 0 ? RETRACTED : 0);
}

int main(void)
{
	onbeat *run;
	onbeat_talker *inputs;
	onbeat_listener *outputs;
	struct image sampled = { 0 }, applied = { 0 };
	struct line state = { 0 };

	must(onbeat_open(&run), "io: cannot join the run");
	must(onbeat_talker_open(run, "inputs", sizeof(sampled), &inputs), "io: inputs");
	must(onbeat_listener_open(run, "outputs", sizeof(applied), &outputs), "io: outputs");
	must(onbeat_start(run), "io: cannot start");

	for (int64_t cycle = 0;; cycle++) {
		while (onbeat_try_read(outputs, &applied, NULL) == ONBEAT_OK)
			; /* the newest outputs are the ones that count */
		sampled.cycle = cycle;
		sampled.bits = line(&state, cycle, applied.bits);
		if (onbeat_write(inputs, &sampled, NULL) != ONBEAT_OK)
			break;
		if (onbeat_sleep_until(run, (cycle + 1) * CYCLE_NS, NULL) != ONBEAT_OK)
			break;
	}
	printf("io: %lld parts pushed off the belt, %lld passed\n", (long long)state.pushed,
	       (long long)state.passed);

	onbeat_listener_close(outputs);
	onbeat_talker_close(inputs);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
