/* Many ends and many messages at one instant; in virtual time all on one CPU. Writes, or reads, the
 * channels `c0` to `cN`, N + 1 being the second argument; or is killed, or writes what the
 * machine's clock says, in round 100. Usage: turns write|thread|read|die|clock CHANNELS */
#define _GNU_SOURCE
#include "common.h"
#include <sched.h>
#include <signal.h>
#include <time.h>

#define MOST 64

static onbeat *run;
static onbeat_talker *out[MOST];
static onbeat_listener *in[MOST];
static int channels;

static int cpus(void)
{
	cpu_set_t set;

	EXPECT(sched_getaffinity(0, sizeof(set), &set) == 0);
	return CPU_COUNT(&set);
}

/* What no run may depend on. */
static uint64_t machine_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_nsec;
}

/* All at one instant, without a call that waits. */
static int write_all(uint64_t value)
{
	for (int i = 0; i < channels; i++) {
		onbeat_status status = onbeat_write(out[i], &value, NULL);

		if (status == ONBEAT_STOPPED)
			return 0;
		must(status);
	}
	return 1;
}

static void write_rounds(const char *how)
{
	for (uint64_t round = 0;; round++) {
		int is_odd_one = round == 100;

		if (!write_all(is_odd_one && strcmp(how, "clock") == 0 ? machine_time() : round))
			return;
		if (is_odd_one && strcmp(how, "die") == 0)
			raise(SIGKILL);
		if (onbeat_sleep_until(run, (int64_t)(round + 1) * PERIOD_NS, NULL))
			return;
	}
}

/* Some frames wait when the first has been awaited, and some not. The last channel is read every
 * second round, two messages at once. */
static void read_rounds(void)
{
	for (uint64_t round = 0;; round++) {
		for (int i = 0; i < channels; i++) {
			uint64_t value, first = i == channels - 1 ? round & ~UINT64_C(1) : round;

			if (i == channels - 1 && round % 2 == 0)
				continue;
			for (uint64_t expected = first; expected <= round; expected++) {
				if (onbeat_read(in[i], &value, NULL))
					return;
				EXPECT(value == expected || expected == 100);
			}
		}
	}
}

static void close_all(void)
{
	for (int i = 0; i < channels; i++) {
		onbeat_talker_close(out[i]);
		onbeat_listener_close(in[i]);
	}
}

/* A thread writes, and cleans up while its creator waits for it. */
static void *write_in_thread(void *before)
{
	EXPECT(cpus() == 1);
	write_rounds("write");
	while (onbeat_sleep_until(run, INT64_MAX, NULL) == ONBEAT_OK)
		;
	close_all();
	EXPECT(cpus() == *(int *)before);
	return NULL;
}

int main(int argc, char **argv)
{
	onbeat_thread *thread;
	int before = cpus(), writes = argc == 3 && strcmp(argv[1], "read") != 0;

	channels = argc == 3 ? atoi(argv[2]) : 0;
	EXPECT(channels >= 1 && channels <= MOST);
	must(onbeat_open(&run));
	for (int i = 0; i < channels; i++) {
		char name[16];

		snprintf(name, sizeof(name), "c%d", i);
		if (writes)
			must(onbeat_talker_open(run, name, 8, &out[i]));
		else
			must(onbeat_listener_open(run, name, 8, &in[i]));
	}
	must(onbeat_start(run));
	EXPECT(cpus() == 1);
	if (strcmp(argv[1], "thread") == 0) {
		must(onbeat_thread_create(run, write_in_thread, &before, &thread));
		onbeat_thread_join(thread, NULL);
	} else if (writes) {
		write_rounds(argv[1]);
		close_all();
	} else {
		read_rounds();
		close_all();
	}
	onbeat_close(run);
	EXPECT(cpus() == before);
	return 0;
}
