/* A merging unit: samples one end of the line 4,000 times a second. Currents and voltages are
 * simulated here; replace measure() by the code that reads your converters.
 *
 * Usage: merging-unit CHANNEL near|far */
#include "substation.h"
#include <string.h>

#define LOAD_MA 1000000 /* peak; flows in at the near end and out at the far end */
#define VOLTAGE_10MV 8981000 /* peak: 110 kV between phases */

/* A short circuit of phase A to ground within the line, from 400 ms to the end: the simulated line
 * has no breaker. Both ends feed it. */
#define FAULT_SAMPLE 1600
#define FAULT_NEAR_MA 8000000
#define FAULT_FAR_MA 3000000

/* 32768 sin x for the first quarter of a period. */
static const int32_t QUARTER[SAMPLES_PER_PERIOD / 4 + 1] = {
	0, 2571, 5126, 7650, 10126, 12540, 14876, 17121, 19261, 21281, 23170,
	24917, 26510, 27939, 29197, 30274, 31164, 31863, 32365, 32667, 32768,
};

static int64_t sine(int64_t sample)
{
	int64_t at = sample % SAMPLES_PER_PERIOD, half = SAMPLES_PER_PERIOD / 2;
	int64_t sign = at < half ? 1 : -1;

	at %= half;
	return sign * QUARTER[at <= half / 2 ? at : half - at];
}

/* The same of phase 0 to 2 of a three-phase system, each 120° behind the one before. */
static int64_t phase_sine(int64_t sample, int phase)
{
	int64_t sin = sine(sample), cos = sine(sample + SAMPLES_PER_PERIOD / 4);

	if (phase == 0)
		return sin;
	/* sin(x ∓ 120°) = -sin(x) / 2 ∓ cos(x) √3 / 2 */
	return (-16384 * sin + (phase == 1 ? -28378 : 28378) * cos) / 32768;
}

/* One end of the line at a sample. */
static void measure(struct sample *sample, int64_t number, bool near)
{
	int64_t neutral = 0;

	memset(sample, 0, sizeof(*sample));
	sample->count = number % SAMPLES_PER_SECOND;
	sample->synchronised = 2;
	for (int phase = 0; phase < PHASES - 1; phase++) {
		int64_t sin = phase_sine(number, phase);
		int64_t amplitude = near ? LOAD_MA : -LOAD_MA;

		if (phase == 0 && number >= FAULT_SAMPLE)
			amplitude = near ? FAULT_NEAR_MA : FAULT_FAR_MA;
		sample->current[phase].value = (int32_t)(amplitude * sin / 32768);
		sample->voltage[phase].value = (int32_t)(VOLTAGE_10MV * sin / 32768);
		neutral += sample->current[phase].value;
	}
	sample->current[PHASES - 1].value = (int32_t)neutral;
}

int main(int argc, char **argv)
{
	onbeat *run;
	onbeat_talker *out;

	if (argc != 3) {
		fprintf(stderr, "usage: merging-unit CHANNEL near|far\n");
		return EXIT_FAILURE;
	}
	must(onbeat_open(&run), "merging-unit: cannot join the run");
	must(onbeat_talker_open(run, argv[1], sizeof(struct sample), &out), argv[1]);
	must(onbeat_start(run), "merging-unit: cannot start");

	for (int64_t number = 0;; number++) {
		struct sample sample;

		measure(&sample, number, strcmp(argv[2], "near") == 0);
		if (onbeat_write(out, &sample, NULL) != ONBEAT_OK)
			break;
		if (onbeat_sleep_until(run, (number + 1) * SAMPLE_NS, NULL) != ONBEAT_OK)
			break;
	}

	onbeat_talker_close(out);
	onbeat_close(run);
	return EXIT_SUCCESS;
}
