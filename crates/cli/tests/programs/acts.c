/*
 * `acts talk` writes `c` and `acts listen` reads it; both continue at the same instant by their
 * clocks, and say what the clock of their machine reads then, which is one and the same here.
 */
#define _GNU_SOURCE
#include "common.h"
#include <time.h>

#define COUNT 1000

static long long act[COUNT];

static long long reading(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char **arguments)
{
	onbeat *run;
	onbeat_talker *out;
	onbeat_listener *in;
	uint64_t value;
	int talks = count > 1 && strcmp(arguments[1], "talk") == 0;

	must(onbeat_open(&run));
	must(talks ? onbeat_talker_open(run, "c", sizeof(value), &out) :
		     onbeat_listener_open(run, "c", sizeof(value), &in));
	must(onbeat_start(run));
	if (talks)
		for (value = 0; value < COUNT; value++) {
			if (onbeat_write_wait(out, &value, NULL, NULL) != ONBEAT_OK)
				break;
			act[value] = reading();
			if (onbeat_sleep_until(run, (int64_t)(value + 1) * 20000000, NULL) !=
			    ONBEAT_OK)
				break;
		}
	else
		while (onbeat_read_wait(in, &value, NULL) == ONBEAT_OK)
			act[value % COUNT] = reading();
	for (value = 0; value < COUNT; value++)
		if (act[value] != 0)
			printf("acts: %llu %lld\n", (unsigned long long)value, act[value]);
	onbeat_close(run);
	return 0;
}
