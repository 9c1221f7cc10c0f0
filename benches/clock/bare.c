/* What reading a clock costs, by hand: two readings in a row, COUNT times, or a reading of another
 * clock between two. Prints the least, the mean, the median and the 99th percentile, in ns. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* As many readings between rests, and rests as long, as in `onbeat measure`: without them a thread
 * of the highest priority is throttled. */
enum { BLOCK = 20000, REST_NS = 5000000 };

static int64_t since(struct timespec first, struct timespec second)
{
	return (second.tv_sec - first.tv_sec) * INT64_C(1000000000) + second.tv_nsec - first.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

static clockid_t clock_of(const char *name)
{
	if (!strcmp(name, "lc"))
		return CLOCK_MONOTONIC;
	return strcmp(name, "gc") ? CLOCK_TAI : CLOCK_REALTIME;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: bare CLOCK BETWEEN|- COUNT CPU PRIORITY\n");
		return 2;
	}
	clockid_t outer = clock_of(argv[1]), inner = clock_of(argv[2]);
	int cross = strcmp(argv[2], "-") != 0;
	size_t count = strtoul(argv[3], NULL, 10);
	struct sched_param parameters = {.sched_priority = atoi(argv[5])};
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[4]), &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus) ||
	    (parameters.sched_priority && sched_setscheduler(0, SCHED_FIFO, &parameters))) {
		perror("bare: error");
		return 1;
	}
	int64_t *samples = malloc(count * sizeof *samples);
	if (!samples || !count)
		return 1;
	memset(samples, 0xff, count * sizeof *samples);
	mlockall(MCL_CURRENT | MCL_FUTURE); /* where it is allowed */
	const struct timespec rest = {.tv_nsec = REST_NS};
	double sum = 0;
	for (size_t i = 0; i < count; i++) {
		struct timespec first, between, second;
		clock_gettime(outer, &first);
		if (cross)
			clock_gettime(inner, &between);
		clock_gettime(outer, &second);
		samples[i] = since(first, second);
		if (i % BLOCK == BLOCK - 1)
			nanosleep(&rest, NULL);
	}
	for (size_t i = 0; i < count; i++)
		sum += (double)samples[i];
	qsort(samples, count, sizeof *samples, by_size);
	printf("%lld %.3f %lld %lld\n", (long long)samples[0], sum / (double)count,
	       (long long)samples[(count + 1) / 2 - 1], (long long)samples[(count * 99 + 99) / 100 - 1]);
	return 0;
}
