/* `precautions REAL`: what a run's library does against delays of the program. */
#define _DEFAULT_SOURCE
#include "common.h"
#include <unistd.h>

static long locked_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmLck: %ld kB", &kib);
	if (status)
		fclose(status);
	return kib;
}

static int holds_latency(void)
{
	int held = 0;
	for (int fd = 0; fd < 256; fd++) {
		char name[32], to[64] = {0};
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		held += readlink(name, to, sizeof(to) - 1) > 0 && strstr(to, "cpu_dma_latency");
	}
	return held;
}

int main(int count, char **arguments)
{
	onbeat *run;
	onbeat_listener *in;
	uint32_t taken;
	int real = count > 1 && strcmp(arguments[1], "1") == 0;

	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", 8, &in));
	must(onbeat_precautions(run, &taken));
	EXPECT(taken == 0 && locked_kib() == 0);
	must(onbeat_start(run));
	must(onbeat_precautions(run, &taken));
	EXPECT(taken == (real ? ONBEAT_MEMORY_LOCKED : 0u));
	EXPECT((locked_kib() > 0) == real && holds_latency() == 0);
	onbeat_listener_close(in);
	onbeat_close(run);
	return 0;
}
