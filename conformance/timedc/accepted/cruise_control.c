/*
 * A program as users write it: a sensor, a controller with modes and a logger over both kinds of
 * channels.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 sensor start
 * trace: 1ms..81ms/20ms sensor write speed, write log, arrive @s
 * trace: 20ms..80ms/20ms sensor release @s
 * trace: 100ms sensor release @s, end
 * trace: 0 controller start, arrive @w
 * trace: 10ms controller release @w, read speed
 * trace: 12ms controller arrive @c
 * trace: 50ms controller release @c, read speed
 * trace: 80ms controller abort @c
 * trace: 90ms controller release @c, end
 * trace: 0 logger start
 * trace: 1ms..81ms/20ms logger read log
 * trace: 81ms logger end
 * output: 50 52 54 56 58
 */
#include <cilktc.h>

#define SAMPLES 5
#define SENSE_EVERY 20
#define WHILE_SAMPLES(i) for (unsigned i = 0; i < SAMPLES; ++i)

typedef struct sample {
	unsigned number;
	int km_per_h;
} sample_t;

int lvchannel(speed);
sample_t fifochannel(log, 8);

enum mode { COAST, BRAKE };

__attribute__((exectime(500, 1000, us))) static int measure(unsigned at)
{
	return 50 + 2 * (int)at;
}

__attribute__((exectime(2, ms))) static void coast(void) { }
__attribute__((exectime(1, sec))) static void brake(int *force) { *force = -1; }

task sensor(void)
{
	WHILE_SAMPLES(i) {
		sample_t now = {.number = i, .km_per_h = measure(i)};

		cwrite(speed, now.km_per_h);
		cwrite(log, now);
		sdelay(SENSE_EVERY, ms); /* @s */
	}
}

task controller(void)
{
	int force = 0, km_per_h;

	sdelay(10, ms); /* @w */
	for (int i = 0; i < 2; i++) {
		cread(speed, km_per_h);
		switch (km_per_h > 50 ? BRAKE : COAST) {
		case COAST:
			coast();
			break;
		case BRAKE:
			brake(&force);
			break;
		}
		ftp(40, 30, ms); /* @c */
	}
}

task logger(void)
{
	char line[64] = "";
	size_t length = 0;
	sample_t one;

	WHILE_SAMPLES(i) {
		cread(log, one);
		length += (size_t)snprintf(line + length, sizeof line - length, "%s%d",
					   i ? " " : "", one.km_per_h);
	}
	puts(line);
}

int main(void)
{
	sensor();
	controller();
	logger();
	return EXIT_SUCCESS;
}
