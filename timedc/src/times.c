/*
 * times.c: execution times that a file declares for whole segments, and their measurement.
 *
 * ONBEAT_EXECUTION_TIMES names the file, ONBEAT_EXECUTION says which case; ONBEAT_MEASURE names the
 * file that gets a row per segment.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "wrap.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEGMENTS_MAX 65536
#define LINE_MAX_OCTETS 4096
#define ROWS_MAX (1U << 20)

bool timedc_observed;

/* Where a segment begins or ends: `task:place`, or a number. */
struct node {
	const char *name; /* NULL if it is a number */
	long number;
};

struct segment {
	struct node from, to;
	timedc_ns best, worst;
	timedc_ns jitter, abort; /* in the worst case; in the best one none */
};

struct row {
	const struct timedc_task *task;
	const struct timedc_point *from, *to;
	timedc_ns cpu, elapsed, jitter, abort;
};

static struct segment *segments;
static unsigned segment_count;
static bool best_case;
static struct row *rows;
static unsigned row_count;

/* --- declared --------------------------------------------------------------------------------- */

static char *trimmed(char *text)
{
	text += strspn(text, " \t\"");
	for (size_t length = strlen(text); length > 0 && strchr(" \t\r\n\"", text[length - 1]); length--)
		text[length - 1] = 0;
	return text;
}

/* A time, which may have a fraction: rounded up or down. Negative when it is none. */
static timedc_ns time_of(const char *text, bool up)
{
	char *end;
	errno = 0;
	timedc_ns whole = strtoll(text, &end, 10);
	if (errno || end == text)
		return -1;
	if (*end == '.') {
		size_t digits = strspn(++end, "0123456789");
		bool more = strspn(end, "0") < digits;
		end += digits;
		whole += up && more && whole < TIMEDC_INFTY;
	}
	return *end ? -1 : whole;
}

static bool node_of(const char *text, struct node *node)
{
	*node = (struct node){0};
	if (*text && text[strspn(text, "0123456789")] == 0) {
		node->number = strtol(text, NULL, 10);
		return true;
	}
	node->name = strchr(text, ':') ? strdup(text) : NULL;
	return node->name;
}

/* SRC,BCET,WCET,JITTER,ABORT,DST; the fourth and the fifth may be empty. False when it is not. */
static bool parse(char *line, struct segment *segment)
{
	char *field[6];
	for (int i = 0; i < 6; i++) {
		char *text = strsep(&line, ",");
		if (!text)
			return false;
		field[i] = trimmed(text);
	}
	segment->jitter = *field[3] ? time_of(field[3], true) : 0;
	segment->abort = *field[4] ? time_of(field[4], true) : 0;
	if (segment->jitter < 0 || segment->abort < 0)
		return false;
	timedc_ns best = time_of(field[1], false), worst = time_of(field[2], true);
	segment->best = best;
	segment->worst = worst;
	return !line && node_of(field[0], &segment->from) && node_of(field[5], &segment->to) &&
	       !segment->from.name == !segment->to.name && best >= 0 && best <= worst;
}

/* A mark of UTF-8 before the first line, and the header. */
static char *content(char *line)
{
	char *text = trimmed(strncmp(line, "\xef\xbb\xbf", 3) == 0 ? line + 3 : line);
	size_t word = strcspn(text, " \t\",");
	return word == 3 && strncasecmp(text, "SRC", word) == 0 ? text + strlen(text) : text;
}

static bool has_task(const struct timedc_unit *unit, const char *name, size_t length)
{
	for (int i = 0; i < unit->task_count; i++)
		if (strlen(unit->tasks[i]->name) == length &&
		    strncmp(unit->tasks[i]->name, name, length) == 0)
			return true;
	return false;
}

/* Whether the program has such a node: a task may come to any unit's points. */
static bool exists(const struct node *node)
{
	const char *place = node->name ? strchr(node->name, ':') + 1 : NULL;
	bool task = false, point = false;
	long count = 0;
	for (const struct timedc_unit *unit = timedc_units(); unit; unit = unit->next) {
		count += unit->point_count;
		task = task || !place || has_task(unit, node->name, place - 1 - node->name);
		for (int i = 0; place && i < unit->point_count && !point; i++)
			point = strcmp(unit->points[i].name, place) == 0;
	}
	if (!place)
		return node->number <= count;
	return task && (point || strcmp(place, "start") == 0 || strcmp(place, "end") == 0);
}

static void check(const struct node *node, const char *file, unsigned line)
{
	if (exists(node))
		return;
	if (node->name)
		timedc_die("%s:%u: the program has no %s", file, line, node->name);
	timedc_die("%s:%u: the program has not so many timing points: %ld", file, line,
		   node->number);
}

static void load(const char *name)
{
	char line[LINE_MAX_OCTETS];
	FILE *file = fopen(name, "r");
	segments = calloc(SEGMENTS_MAX, sizeof(*segments));
	if (!file || !segments)
		timedc_die("%s: %s", name, strerror(errno));
	for (unsigned number = 1; fgets(line, sizeof(line), file); number++) {
		char *text = content(line);
		if (*text == '#' || *text == 0)
			continue;
		if (segment_count == SEGMENTS_MAX)
			timedc_die("%s: more than %d segments", name, SEGMENTS_MAX);
		if (!parse(text, &segments[segment_count++]))
			timedc_die("%s:%u: not SRC,BCET,WCET,JITTER,ABORT,DST with times in "
				   "nanoseconds and places as task:line, or numbers", name,
				   number);
		check(&segments[segment_count - 1].from, name, number);
		check(&segments[segment_count - 1].to, name, number);
	}
	fclose(file);
}

/* The place of a point in the program, from 1: units count in the order in which they are linked,
 * which is the list's backwards. */
static long number_of(const struct timedc_point *point)
{
	long number = 0;
	for (const struct timedc_unit *unit = timedc_units(); unit; unit = unit->next) {
		if (number > 0)
			number += unit->point_count;
		for (int i = 0; i < unit->point_count && number == 0; i++)
			if (&unit->points[i] == point)
				number = i + 1;
	}
	return number;
}

/* Whether a task is at a node; without a point, at its start or its end. */
static bool is_at(const struct node *node, const struct timedc_task *task,
		  const struct timedc_point *point, const char *otherwise)
{
	if (!node->name)
		return point ? number_of(point) == node->number
			     : node->number == 0 && strcmp(otherwise, "start") == 0;
	size_t length = strlen(task->name);
	return strncmp(node->name, task->name, length) == 0 && node->name[length] == ':' &&
	       strcmp(node->name + length + 1, point ? point->name : otherwise) == 0;
}

/* The task computes for so long, unless its deadline comes before. */
static void spend(struct timedc_thread *thread, timedc_ns span)
{
	timedc_defer();
	timedc_wait_begins(thread);
	timedc_ns limit = timedc_limit(thread);
	if (span > 0 ? !timedc_pass(thread, span, limit) : timedc_now() > limit)
		timedc_expire(thread);
	timedc_wait_ends(thread);
	timedc_resume(thread);
}

/* What is declared of the segment in progress; NULL if nothing is, or it is not counted. */
static const struct segment *declared(const struct timedc_thread *thread,
				      const struct timedc_point *to)
{
	if (segment_count == 0 || !timedc_backend_is_virtual())
		return NULL;
	for (unsigned i = 0; i < segment_count; i++) {
		const struct segment *segment = &segments[i];
		if (is_at(&segment->from, thread->task, thread->from, "start") &&
		    is_at(&segment->to, thread->task, to, "end"))
			return segment;
	}
	return NULL;
}

void timedc_times_pass(struct timedc_thread *thread, const struct timedc_point *to, timedc_ns due)
{
	const struct segment *segment = declared(thread, to);
	if (!segment)
		return;
	timedc_ns span = best_case ? segment->best : segment->worst;
	if (thread->frame || thread->held || thread->critical || due == TIMEDC_INFTY) {
		spend(thread, span);
		return;
	}
	/* A segment without code that could be late has no guard, but its time may be too long. */
	timedc_defer();
	thread->aborted = span > 0 ? !timedc_pass(thread, span, due) : timedc_now() > due;
	timedc_resume(thread);
}

void timedc_times_abort(struct timedc_thread *thread, const struct timedc_point *to)
{
	const struct segment *segment = declared(thread, to);
	if (segment && !best_case)
		spend(thread, segment->abort);
}

timedc_ns timedc_times_jitter(const struct timedc_thread *thread, const struct timedc_point *from)
{
	timedc_ns longest = 0;
	if (segment_count == 0 || best_case || !timedc_backend_is_virtual())
		return 0;
	for (unsigned i = 0; i < segment_count; i++)
		if (segments[i].jitter > longest &&
		    is_at(&segments[i].from, thread->task, from, "start"))
			longest = segments[i].jitter;
	return longest;
}

void timedc_times_start(struct timedc_thread *thread)
{
	timedc_ns jitter = timedc_times_jitter(thread, NULL);
	if (jitter > 0)
		timedc_sleep_until(timedc_add(timedc_now(), jitter));
}

void timedc_work(timedc_ns bcet, timedc_ns wcet)
{
	struct timedc_thread *thread = timedc_self;
	if (!thread || !timedc_backend_in_run())
		return;
	timedc_begin();
	if (timedc_backend_is_virtual())
		spend(thread, best_case ? bcet : wcet);
}

/* --- sleeping, which takes virtual time ------------------------------------------------------- */

/* Whether it has been slept: elsewhere the system's call does it, which may be aborted anywhere. */
static bool sleeps(timedc_ns span)
{
	struct timedc_thread *thread = timedc_self;
	if (!thread || !timedc_backend_in_run())
		return false;
	if (!timedc_backend_is_virtual())
		return false;
	timedc_defer();
	timedc_wait_begins(thread);
	timedc_ns limit = timedc_limit(thread);
	timedc_ns until = timedc_add(timedc_now(), span);
	timedc_sleep_until(until <= limit ? until : limit);
	/* Who woke after the deadline is late as well. */
	if (until > limit || timedc_now() > limit)
		timedc_expire(thread);
	timedc_wait_ends(thread);
	timedc_resume(thread);
	return true;
}

static timedc_ns span_of(const struct timespec *span)
{
	return span ? span->tv_sec * TIMEDC_NS_IN_SEC + span->tv_nsec : 0;
}

WRAP_DECLARE(unsigned, sleep, (unsigned seconds));
unsigned __wrap_sleep(unsigned seconds)
{
	return sleeps(seconds * TIMEDC_NS_IN_SEC) ? 0 : __real_sleep(seconds);
}

WRAP_DECLARE(int, usleep, (useconds_t us));
int __wrap_usleep(useconds_t us)
{
	return sleeps(us * 1000LL) ? 0 : __real_usleep(us);
}

WRAP_DECLARE(int, nanosleep, (const struct timespec *span, struct timespec *left));
int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
	return sleeps(span_of(span)) ? 0 : __real_nanosleep(span, left);
}

/* --- measured --------------------------------------------------------------------------------- */

void timedc_measure_from(struct timedc_thread *thread, const struct timedc_point *from,
			 timedc_ns jitter)
{
	thread->from = from;
	if (!rows)
		return;
	thread->jitter = jitter;
	thread->released = timedc_now();
	thread->cpu_began = timedc_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void timedc_measure_to(struct timedc_thread *thread, const struct timedc_point *to, timedc_ns now)
{
	if (!rows)
		return;
	timedc_ns cpu = timedc_clock_ns(CLOCK_THREAD_CPUTIME_ID) - thread->cpu_began;
	unsigned number = __atomic_fetch_add(&row_count, 1, __ATOMIC_RELAXED);
	if (number >= ROWS_MAX)
		return;
	rows[number] = (struct row){
		NULL, thread->from, to, cpu, now - thread->released, thread->jitter,
		thread->last_aborted && to ? thread->abort_latency : -1,
	};
	/* Last: the program may be ended meanwhile. */
	__atomic_store_n(&rows[number].task, thread->task, __ATOMIC_RELEASE);
}

static void write_name(FILE *file, const struct timedc_task *task,
		       const struct timedc_point *point, const char *otherwise)
{
	fprintf(file, "%s:%s,", task->name, point ? point->name : otherwise);
}

static void write_rows(FILE *file, unsigned count)
{
	fputs("src,dst,cpu_ns,elapsed_ns,release_jitter_ns,abort_ns\n", file);
	for (unsigned i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		if (!__atomic_load_n(&row->task, __ATOMIC_ACQUIRE))
			continue;
		write_name(file, row->task, row->from, "start");
		write_name(file, row->task, row->to, "end");
		fprintf(file, "%" PRId64 ",%" PRId64 ",%" PRId64 ",", (int64_t)row->cpu,
			(int64_t)row->elapsed, (int64_t)row->jitter);
		if (row->abort >= 0)
			fprintf(file, "%" PRId64, (int64_t)row->abort);
		fputc('\n', file);
	}
}

static void *end_when_asked(void *asked)
{
	int number;
	sigwait(asked, &number);
	exit(EXIT_SUCCESS);
}

/* A program without end is measured until SIGTERM, and writes then what it has measured. */
static void end_on_request(void)
{
	static sigset_t asked;
	pthread_t waiter;
	sigemptyset(&asked);
	sigaddset(&asked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &asked, NULL);
	if (pthread_create(&waiter, NULL, end_when_asked, &asked) == 0)
		pthread_detach(waiter);
	else
		pthread_sigmask(SIG_UNBLOCK, &asked, NULL);
}

void timedc_times_begin(void)
{
	const char *declared = secure_getenv("ONBEAT_EXECUTION_TIMES");
	const char *which = secure_getenv("ONBEAT_EXECUTION");
	best_case = which && strcmp(which, "best") == 0;
	if (which && !best_case && strcmp(which, "worst") != 0)
		timedc_die("ONBEAT_EXECUTION is neither best nor worst: %s", which);
	if (declared)
		load(declared);
	if (secure_getenv("ONBEAT_MEASURE")) {
		rows = mmap(NULL, ROWS_MAX * sizeof(*rows), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (rows == MAP_FAILED)
			timedc_die("no memory for measurements: %s", strerror(errno));
		end_on_request();
		timedc_observed = true;
	}
}

void timedc_times_end(void)
{
	const char *name = secure_getenv("ONBEAT_MEASURE");
	if (!rows || !name)
		return;
	unsigned count = __atomic_load_n(&row_count, __ATOMIC_ACQUIRE);
	unsigned kept = count < ROWS_MAX ? count : ROWS_MAX;
	FILE *file = fopen(name, "w");
	if (!file) {
		fprintf(stderr, "timedc: %s: %s\n", name, strerror(errno));
		return;
	}
	write_rows(file, kept);
	if (fclose(file) != 0)
		fprintf(stderr, "timedc: %s: %s\n", name, strerror(errno));
	if (count > kept)
		fprintf(stderr, "timedc: %s: %u segments more did not fit\n", name, count - kept);
}
