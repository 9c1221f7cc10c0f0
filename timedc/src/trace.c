/*
 * trace.c: what tasks did, for the file that ONBEAT_TRACE names. Kept in memory until the end.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EVENTS_MAX (1U << 18)

struct event {
	timedc_ns at, value;
	const struct timedc_thread *thread;
	const char *place;
	unsigned number;
	unsigned char event;
	bool written; /* entirely */
	bool stopped; /* after the end of the run */
};

bool timedc_tracing;
static struct event *events;
static unsigned event_count;

static const struct {
	const char *name;
	bool has_value;
} kinds[] = {
	[TIMEDC_E_START] = {"start", false},   [TIMEDC_E_END] = {"end", false},
	[TIMEDC_E_ARRIVE] = {"arrive", true},  [TIMEDC_E_ABORT] = {"abort", true},
	[TIMEDC_E_LATE] = {"late", true},      [TIMEDC_E_RELEASE] = {"release", true},
	[TIMEDC_E_SKIP] = {"skip", false},     [TIMEDC_E_REACH] = {"reach", false},
	[TIMEDC_E_WRITE] = {"write", false},   [TIMEDC_E_READ] = {"read", false},
	[TIMEDC_E_FULL] = {"full", false},
};

void timedc_trace_begin(void)
{
	if (!secure_getenv("ONBEAT_TRACE"))
		return;
	events = mmap(NULL, EVENTS_MAX * sizeof(*events), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (events == MAP_FAILED)
		timedc_die("no memory for the trace: %s", strerror(errno));
	timedc_tracing = timedc_observed = true;
}

void timedc_trace_add(struct timedc_thread *thread, enum timedc_event event, const char *place,
		      timedc_ns at, timedc_ns value)
{
	unsigned number = __atomic_fetch_add(&event_count, 1, __ATOMIC_RELAXED);
	if (number >= EVENTS_MAX)
		return;
	events[number] = (struct event){
		at, value, thread, place, number, (unsigned char)event, false,
		timedc_backend_stopped(),
	};
	__atomic_store_n(&events[number].written, true, __ATOMIC_RELEASE);
}

void timedc_reached(const char *place)
{
	struct timedc_thread *thread = timedc_defer();
	if (thread)
		timedc_trace(thread, TIMEDC_E_REACH, place, timedc_now(), 0);
	timedc_resume(thread);
}

/* In order of time. What follows the end of a run is no more in an order that the run made: there
 * the tasks' order counts. */
static int compare(const void *left, const void *right)
{
	const struct event *a = left, *b = right;
	if (a->stopped != b->stopped)
		return a->stopped - b->stopped;
	if (!a->stopped && a->at != b->at)
		return a->at < b->at ? -1 : 1;
	if (a->stopped && a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

void timedc_trace_end(void)
{
	const char *name = secure_getenv("ONBEAT_TRACE");
	if (!timedc_tracing || !name)
		return;
	timedc_tracing = false;
	unsigned count = __atomic_load_n(&event_count, __ATOMIC_ACQUIRE);
	unsigned kept = count < EVENTS_MAX ? count : EVENTS_MAX;
	FILE *file = fopen(name, "w");
	if (!file) {
		fprintf(stderr, "timedc: %s: %s\n", name, strerror(errno));
		return;
	}
	qsort(events, kept, sizeof(*events), compare);
	fputs("time_ns,task,event,place,value_ns\n", file);
	for (unsigned i = 0; i < kept; i++) {
		const struct event *event = &events[i];
		if (!__atomic_load_n(&event->written, __ATOMIC_ACQUIRE))
			continue;
		fprintf(file, "%" PRId64 ",%s,%s,%s,", (int64_t)event->at, event->thread->task->name,
			kinds[event->event].name, event->place);
		if (kinds[event->event].has_value)
			fprintf(file, "%" PRId64, (int64_t)event->value);
		fputc('\n', file);
	}
	if (fclose(file) != 0)
		fprintf(stderr, "timedc: %s: %s\n", name, strerror(errno));
	if (count > kept)
		fprintf(stderr, "timedc: %s: %u events more did not fit\n", name, count - kept);
}
