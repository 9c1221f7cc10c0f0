/*
 * The main program of every contestant: NAME talker|listener PERIOD_NS DURATION_NS [VARIANT].
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct bench_message) == BENCH_SIZE, "a message has the stated size");

#define SAMPLES_MAX (1 << 22)
#define WARM_UP_NS 200000000

/* Figures of the counted part: from the first message after the warm-up on. */
static int64_t period_ns, duration_ns, started_ns, due_ns, first_ns, last_ns;
static uint64_t count;
static int64_t *samples;
static struct rusage before;

int64_t bench_period(void)
{
	return period_ns;
}

int64_t bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void bench_sleep_until(int64_t until_ns)
{
	struct timespec until = { until_ns / 1000000000, until_ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

_Noreturn void bench_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "failed");
	exit(1);
}

static void count_from_here(int64_t now_ns)
{
	if (getrusage(RUSAGE_SELF, &before))
		bench_fail("getrusage");
	first_ns = now_ns;
}

bool bench_next(struct bench_message *message)
{
	if (period_ns) {
		due_ns = due_ns ? due_ns + period_ns : bench_now() + period_ns;
		bench_sleep_until(due_ns);
	}
	int64_t now_ns = bench_now();
	if (!started_ns)
		started_ns = now_ns;
	int64_t since_ns = now_ns - started_ns - WARM_UP_NS;
	if (since_ns >= duration_ns)
		return false;
	if (since_ns >= 0) {
		if (!count)
			count_from_here(now_ns);
		last_ns = now_ns;
		message->sequence = ++count;
	}
	message->sent_ns = bench_now();
	return true;
}

void bench_arrived(const struct bench_message *message)
{
	int64_t now_ns = bench_now();

	if (!message->sequence)
		return;
	if (!count)
		count_from_here(now_ns);
	last_ns = now_ns;
	if (count < SAMPLES_MAX)
		samples[count] = now_ns - message->sent_ns;
	count++;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Of the sorted samples, the smallest that `per_mille` of them do not exceed. */
static int64_t quantile_ns(uint64_t samples_count, uint64_t per_mille)
{
	uint64_t rank = (samples_count * per_mille + 999) / 1000;

	return samples_count ? samples[rank ? rank - 1 : 0] : 0;
}

static int64_t cpu_ns(const struct rusage *usage)
{
	int64_t s = usage->ru_utime.tv_sec + usage->ru_stime.tv_sec;

	return s * 1000000000 + (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static void print_result(void)
{
	struct rusage after;
	uint64_t n = count < SAMPLES_MAX ? count : SAMPLES_MAX;

	getrusage(RUSAGE_SELF, &after);
	printf("{\"count\": %ju, \"duration_ns\": %jd, \"voluntary\": %ld, \"involuntary\": %ld, "
	       "\"cpu_ns\": %jd",
	       (uintmax_t)count, (intmax_t)(last_ns - first_ns), after.ru_nvcsw - before.ru_nvcsw,
	       after.ru_nivcsw - before.ru_nivcsw, (intmax_t)(cpu_ns(&after) - cpu_ns(&before)));
	if (samples) {
		qsort(samples, n, sizeof *samples, by_value);
		printf(", \"min_ns\": %jd, \"p50_ns\": %jd, \"p90_ns\": %jd, \"p99_ns\": %jd, "
		       "\"max_ns\": %jd",
		       (intmax_t)quantile_ns(n, 0), (intmax_t)quantile_ns(n, 500),
		       (intmax_t)quantile_ns(n, 900), (intmax_t)quantile_ns(n, 990),
		       (intmax_t)quantile_ns(n, 1000));
	}
	puts("}");
	fflush(stdout);
}

/* Waits in a thread of its own, so that no contestant has to look for an end. */
static void *wait_for_the_end(void *set)
{
	int signal_number;

	sigwait(set, &signal_number);
	print_result();
	_exit(0);
}

void bench_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void prepare_to_listen(void)
{
	static sigset_t set;
	pthread_t thread;
	size_t size = SAMPLES_MAX * sizeof *samples;

	/* Populated now, so that no page fault falls into a sample. */
	samples = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (samples == MAP_FAILED)
		bench_fail("mmap");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	errno = pthread_create(&thread, NULL, wait_for_the_end, &set);
	if (errno)
		bench_fail("pthread_create");
}

int main(int argc, char **argv)
{
	/* Nothing is left when the runner is killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Exact timers for all, as Onbeat asks for; threads inherit it. */
	prctl(PR_SET_TIMERSLACK, 1);
	if (argc < 4) {
		fprintf(stderr, "usage: %s talker|listener PERIOD_NS DURATION_NS [VARIANT]\n",
			argv[0]);
		return 2;
	}
	period_ns = strtoll(argv[2], NULL, 10);
	duration_ns = strtoll(argv[3], NULL, 10);
	if (strcmp(argv[1], "talker") == 0) {
		bench_talker(argc > 4 ? argv[4] : "");
		print_result();
		_exit(0);
	}
	prepare_to_listen();
	bench_listener(argc > 4 ? argv[4] : "");
	return 1;
}
