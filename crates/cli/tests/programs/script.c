/*
 * Does what its arguments say, one call each, and writes what every call returned into NAME.log:
 * one script for all engines. `script NAME COMMAND...`; the commands stand in `commands` below.
 * Ends are numbered in the order of their opening, talkers and listeners apart; the message that
 * is written is the number of writes so far, which the octets behind it follow from, if `size` says
 * that it is longer.
 */
#define _DEFAULT_SOURCE
#include "common.h"
#include <inttypes.h>
#include <unistd.h>

#define ENDS 8

static onbeat *run;
static onbeat_talker *talkers[ENDS];
static onbeat_listener *listeners[ENDS];
static size_t talker_count, listener_count;
static const char *name;
static FILE *out;
static char **next;
static onbeat_selector *selector;
static unsigned selects;
static uint64_t written;
static int times;
static size_t size = sizeof(uint64_t);
static unsigned char message_octets[65536];

static const char *word(onbeat_status status)
{
	static const char *const words[] = { "OK", "STOPPED", "EMPTY", "TIMED_OUT", "RATE" };

	return status < 0 ? "FAILED" : words[status];
}

static long long number(void)
{
	return atoll(*next++);
}

static onbeat_status said(const char *what, onbeat_status status)
{
	fprintf(out, "%s %s\n", what, word(status));
	fflush(out);
	return status;
}

static unsigned char octet(uint64_t value, size_t at)
{
	return (unsigned char)(value * 31 + at * 7 + at / 251);
}

/* The message of that number. */
static const void *message_of(uint64_t value)
{
	memcpy(message_octets, &value, sizeof(value));
	for (size_t at = sizeof(value); at < size; at++)
		message_octets[at] = octet(value, at);
	return message_octets;
}

/* The number of the message that was read, all of whose octets are right. */
static uint64_t number_of_message(void)
{
	uint64_t value;

	memcpy(&value, message_octets, sizeof(value));
	for (size_t at = sizeof(value); at < size; at++)
		EXPECT(message_octets[at] == octet(value, at));
	return value;
}

static onbeat_status do_size(const char *what)
{
	(void)what;
	size = (size_t)number();
	return ONBEAT_OK;
}

static onbeat_status do_talker(const char *what)
{
	const char *channel = *next++;

	return said(what, onbeat_talker_open(run, channel, size, &talkers[talker_count++]));
}

static onbeat_status do_listener(const char *what)
{
	const char *channel = *next++;

	return said(what, onbeat_listener_open(run, channel, size, &listeners[listener_count++]));
}

static onbeat_status do_start(const char *what)
{
	return said(what, onbeat_start(run));
}

static onbeat_status do_sleep(const char *what)
{
	return said(what, onbeat_sleep_until(run, number() * 1000, NULL));
}

static onbeat_status do_sleep_for(const char *what)
{
	int64_t now;

	must(onbeat_now(run, &now));
	return said(what, onbeat_sleep_until(run, now + number() * 1000, NULL));
}

static onbeat_status do_work(const char *what)
{
	return said(what, onbeat_work(run, number() * 1000));
}

static onbeat_status do_write(const char *what)
{
	onbeat_talker *talker = talkers[number()];
	const void *message = message_of(++written);
	onbeat_status status;

	if (strcmp(what, "w") == 0)
		status = onbeat_write(talker, message, NULL);
	else if (strcmp(what, "tw") == 0)
		status = onbeat_try_write(talker, message, NULL);
	else if (strcmp(what, "ww") == 0)
		status = onbeat_write_wait(talker, message, NULL, NULL);
	else
		status = onbeat_write_at(talker, message, number() * 1000, NULL);
	return said(what, status);
}

static onbeat_status do_write_many(const char *what)
{
	onbeat_talker *talker = talkers[number()];
	size_t count = number(), sent;
	unsigned char *values = calloc(count, size);
	onbeat_status status;

	EXPECT(values != NULL);
	for (size_t i = 0; i < count; i++)
		memcpy(values + i * size, message_of(++written), size);
	if (strcmp(what, "wm") == 0)
		status = onbeat_write_many(talker, values, count, &sent, NULL);
	else
		status = onbeat_try_write_many(talker, values, count, &sent, NULL);
	free(values);
	fprintf(out, "%zu by ", sent);
	return said(what, status);
}

static void show(const char *what, uint64_t value, const onbeat_message *message)
{
	fprintf(out, "%s OK v=%" PRIu64 " seq=%" PRIu64 " gap=%u fl=%u", what, value,
		message->sequence, message->gap, message->flags);
	if (times)
		fprintf(out, " latency=%" PRId64 " age=%" PRId64, message->latency_ns,
			message->age_ns);
	fputc('\n', out);
	fflush(out);
}

static onbeat_status do_read(const char *what)
{
	onbeat_listener *listener = listeners[number()];
	onbeat_message message;
	void *octets = message_octets;
	onbeat_status status;

	if (strcmp(what, "r") == 0)
		status = onbeat_read(listener, octets, &message);
	else if (strcmp(what, "rw") == 0)
		status = onbeat_read_wait(listener, octets, &message);
	else if (strcmp(what, "tr") == 0)
		status = onbeat_try_read(listener, octets, &message);
	else if (strcmp(what, "rl") == 0)
		status = onbeat_read_latest(listener, octets, &message);
	else
		status = onbeat_read_timeout(listener, octets, number() * 1000, &message);
	if (status != ONBEAT_OK)
		return said(what, status);
	show(what, number_of_message(), &message);
	return status;
}

static onbeat_status do_rendezvous(const char *what)
{
	onbeat_talker *talker = talkers[number()];
	onbeat_listener *listener = listeners[number()];
	static unsigned char theirs[sizeof(message_octets)];
	const void *ours = message_of(++written);

	return said(what, onbeat_rendezvous(talker, ours, listener, theirs, NULL));
}

static onbeat_status do_limit(const char *what)
{
	onbeat_listener *listener = listeners[number()];

	return said(what, onbeat_listener_limit(listener, number() * 1000));
}

static onbeat_status do_select(const char *what)
{
	const onbeat_listener *const *ends = (const onbeat_listener *const *)listeners;
	size_t index = ENDS;
	long long us = number(), ns = us < 0 ? us : us * 1000;
	onbeat_status status;

	/* By turns, as a selector says the same. */
	if (selects++ % 2) {
		if (selector == NULL)
			must(onbeat_selector_open(run, ends, listener_count, &selector));
		status = onbeat_selector_wait(selector, ns, &index);
	} else {
		status = onbeat_select(run, ends, listener_count, ns, &index);
	}
	fprintf(out, "%s %s %zu\n", what, word(status), index);
	fflush(out);
	return status;
}

static onbeat_status do_deadline(const char *what)
{
	onbeat_listener *listener = listeners[number()];

	return said(what, onbeat_listener_deadline(listener, number() * 1000));
}

static onbeat_status do_lifespan(const char *what)
{
	onbeat_listener *listener = listeners[number()];

	return said(what, onbeat_listener_lifespan(listener, number() * 1000));
}

static onbeat_status do_expired(const char *what)
{
	onbeat_counters c;

	must(onbeat_listener_counters_sized(listeners[number()], sizeof(c), &c));
	fprintf(out, "%s received=%" PRIu64 " expired=%" PRIu64 "\n", what, c.received,
		c.expired);
	fflush(out);
	return ONBEAT_OK;
}

static onbeat_status do_liveness(const char *what)
{
	onbeat_liveness l;

	must(onbeat_listener_liveness(listeners[number()], sizeof(l), &l));
	fprintf(out, "%s state=%u changed=%u missed=%" PRIu64 " restarts=%" PRIu64 " second=%"
		PRIu64 " last=%d\n", what, l.state, l.changed, l.deadline_missed, l.restarts,
		l.second_talker, l.last_arrival_ns != INT64_MIN);
	fflush(out);
	return ONBEAT_OK;
}

static onbeat_status do_close_talker(const char *what)
{
	(void)what;
	onbeat_talker_close(talkers[--talker_count]);
	return ONBEAT_OK;
}

static onbeat_status do_counters(const char *what)
{
	onbeat_counters c;

	for (size_t i = 0; i < talker_count; i++) {
		must(onbeat_talker_counters(talkers[i], &c));
		fprintf(out, "%s T%zu sent=%" PRIu64 " rate=%" PRIu64 "\n", what, i, c.sent,
			c.rate_exceeded);
	}
	for (size_t i = 0; i < listener_count; i++) {
		must(onbeat_listener_counters(listeners[i], &c));
		fprintf(out, "%s L%zu received=%" PRIu64 " lost=%" PRIu64 " late=%" PRIu64
			" duplicate=%" PRIu64 "\n", what, i, c.received, c.lost, c.late,
			c.duplicate);
	}
	fflush(out);
	return ONBEAT_OK;
}

static onbeat_status do_close(const char *what)
{
	(void)what;
	onbeat_selector_close(selector);
	selector = NULL;
	for (size_t i = 0; i < talker_count; i++)
		onbeat_talker_close(talkers[i]);
	for (size_t i = 0; i < listener_count; i++)
		onbeat_listener_close(listeners[i]);
	talker_count = listener_count = 0;
	onbeat_close(run);
	run = NULL;
	return ONBEAT_OK;
}

/* The machine's time passes, not the run's. */
static onbeat_status do_pause(const char *what)
{
	(void)what;
	usleep((unsigned)number());
	return ONBEAT_OK;
}

/* Adds a line to a file that programs share. */
static onbeat_status do_note(const char *what)
{
	FILE *file = fopen("notes.log", "a");

	(void)what;
	EXPECT(file != NULL);
	fprintf(file, "%s %s\n", name, *next++);
	fclose(file);
	return ONBEAT_OK;
}

static onbeat_status do_times(const char *what)
{
	(void)what;
	times = 1;
	return ONBEAT_OK;
}

static onbeat_status do_exit(const char *what)
{
	(void)what;
	exit((int)number());
}

static onbeat_status do_loop(const char *what);

static const struct command {
	const char *name;
	onbeat_status (*call)(const char *what);
} commands[] = {
	{ "T", do_talker },	   { "L", do_listener }, { "start", do_start },
	{ "sl", do_sleep },	   { "slr", do_sleep_for }, { "work", do_work },
	{ "w", do_write },	   { "tw", do_write },	 { "ww", do_write },
	{ "wa", do_write },	   { "r", do_read },	 { "rw", do_read },
	{ "tr", do_read },	   { "rl", do_read },	 { "rt", do_read },
	{ "rdv", do_rendezvous }, { "lim", do_limit },	 { "sel", do_select },
	{ "ctr", do_counters },   { "close", do_close }, { "pause", do_pause },
	{ "note", do_note },	   { "times", do_times }, { "exit", do_exit },
	{ "loop", do_loop },	   { "dl", do_deadline }, { "live", do_liveness },
	{ "size", do_size },	   { "xT", do_close_talker }, { "wm", do_write_many },
	{ "twm", do_write_many }, { "lsp", do_lifespan }, { "exp", do_expired },
};

static onbeat_status perform(void)
{
	const char *what = *next++;

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(commands[i].name, what) == 0)
			return commands[i].call(what);
	fprintf(stderr, "no command `%s`\n", what);
	exit(EXIT_FAILURE);
}

/* `loop N COMMAND... end`, N times or until a call says that the run is over. */
static onbeat_status do_loop(const char *what)
{
	long long rounds = number();
	char **body = next;
	onbeat_status status = ONBEAT_OK;

	(void)what;
	for (long long i = 0; i < rounds; i++) {
		next = body;
		while (strcmp(*next, "end") != 0 && status != ONBEAT_STOPPED && status >= 0)
			status = perform();
	}
	while (strcmp(*next, "end") != 0)
		next++;
	next++;
	return status;
}

int main(int count, char **arguments)
{
	char path[256];

	EXPECT(count > 1);
	name = arguments[1];
	snprintf(path, sizeof(path), "%s.log", name);
	out = fopen(path, "w");
	EXPECT(out != NULL);
	next = arguments + 2;
	must(onbeat_open(&run));
	while (*next != NULL)
		perform();
	if (run != NULL)
		do_close("close");
	return 0;
}
