/*
 * Keeps its own books on every figure that the library reports of a channel, from what the messages
 * say and from the clock before and after each call, and ends with an error where they differ.
 * `books talk SEED` writes `c`, `books listen SEED D` reads it, each call drawn from the seed. What
 * was written and read is in talker.log and listener.log, for others to compare with the records.
 */
#define _DEFAULT_SOURCE
#include "common.h"
#include <inttypes.h>
#include <poll.h>

struct content {
	uint64_t number;	/* of the messages that were written, from 0 */
	int64_t before;		/* what the talker's clock read before the write */
	int64_t last_capture;	/* of the message before, as its write returned it */
};

static onbeat *run;
static FILE *out;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

static int64_t now(void)
{
	int64_t ns;

	must(onbeat_now(run, &ns));
	return ns;
}

/* One write in one of the ways there are. */
static onbeat_status write_once(onbeat_talker *talker, const struct content *message, int64_t *at)
{
	int64_t error;

	switch (draw(8)) {
	case 0:
		return onbeat_write_wait(talker, message, at, &error);
	case 1:
		return onbeat_write_at(talker, message, message->before + PERIOD_NS, at);
	case 2:
	case 3:
		return onbeat_write(talker, message, at);
	default:
		return onbeat_try_write(talker, message, at);
	}
}

static void talk(void)
{
	struct content message = { 0, 0, -1 };
	onbeat_status status = ONBEAT_OK;
	onbeat_counters counted;
	onbeat_talker *talker;
	int64_t capture, refused = 0;

	must(onbeat_talker_open(run, "c", sizeof(message), &talker));
	must(onbeat_start(run));
	while (status != ONBEAT_STOPPED) {
		if (draw(3) > 0)
			onbeat_sleep_until(run, now() + (int64_t)draw(3 * PERIOD_NS), NULL);
		message.before = now();
		status = write_once(talker, &message, &capture);
		EXPECT(status == ONBEAT_OK || status == ONBEAT_STOPPED ||
		       status == ONBEAT_RATE_EXCEEDED);
		refused += status == ONBEAT_RATE_EXCEEDED;
		if (status != ONBEAT_OK)
			continue;
		EXPECT(capture >= message.before && capture > message.last_capture);
		fprintf(out, "%" PRIu64 " %" PRId64 "\n", message.number, capture);
		message.number++;
		message.last_capture = capture;
	}
	/* One for an instant after the end was refused before the end, others are only after it. */
	EXPECT(onbeat_sleep_until(run, INT64_MAX, NULL) == ONBEAT_STOPPED);
	EXPECT(onbeat_try_write(talker, &message, NULL) == ONBEAT_STOPPED);
	must(onbeat_talker_counters(talker, &counted));
	EXPECT(counted.sent == message.number && counted.rate_exceeded >= (uint64_t)refused);
	onbeat_talker_close(talker);
}

/* How a reader waits and reads, and the name of it in the log. */
enum way { READ, READ_WAIT, READ_TIMEOUT, TRY_READ, LATEST, SELECT, POLL, WAYS };
static const char *const names[WAYS] = { "read", "read_wait", "read_timeout", "try_read",
					 "read_latest", "select", "poll" };

struct reader {
	onbeat_listener *in;
	int descriptor;		/* -1: none */
	int64_t fixed_delay;
	int64_t began;		/* to wait: before the select or poll, or the read */
	int64_t called;		/* the call that hands the message over */
	struct content last;
	int64_t last_capture;	/* -1: nothing was read yet */
	uint64_t read, lost, late;
	int skips;		/* read_latest has skipped some that nobody can count here */
};

static onbeat_status read_once(struct reader *r, enum way way, struct content *message,
			       onbeat_message *info)
{
	const onbeat_listener *ends[] = { r->in };
	struct pollfd wait = { r->descriptor, POLLIN, 0 };
	onbeat_status status;
	size_t index;

	r->began = now();
	if (way == SELECT) {
		status = onbeat_select(run, ends, 1, (int64_t)draw(3 * PERIOD_NS), &index);
		if (status != ONBEAT_OK)
			return status;
	} else if (way == POLL) {
		poll(&wait, 1, 3);
	}
	r->called = now();
	switch (way) {
	case READ:
		return onbeat_read(r->in, message, info);
	case READ_WAIT:
		return onbeat_read_wait(r->in, message, info);
	case READ_TIMEOUT:
		return onbeat_read_timeout(r->in, message, (int64_t)draw(2 * PERIOD_NS), info);
	case LATEST:
		return onbeat_read_latest(r->in, message, info);
	default:
		return onbeat_try_read(r->in, message, info);
	}
}

/* What the times of a new message must be. */
static void check_times(const struct reader *r, enum way way, const onbeat_message *info,
			int64_t returned)
{
	int64_t receipt = info->capture_ns + info->latency_ns;
	int64_t handed_over = info->capture_ns + info->age_ns;

	EXPECT(r->called <= handed_over && handed_over <= returned);
	EXPECT(info->arrived_ns <= receipt && receipt <= handed_over);
	if (r->descriptor >= 0)
		EXPECT(receipt >= r->called);
	else if (way == SELECT && info->arrived_ns > r->began)
		EXPECT(receipt >= r->began && receipt <= r->called);
	else if (way == READ && info->arrived_ns > r->called)
		EXPECT(receipt >= r->called);
	if (way == READ_WAIT)
		EXPECT(info->age_ns == r->fixed_delay - info->wakeup_error_ns);
	else
		EXPECT(info->wakeup_error_ns == 0);
	EXPECT(((info->flags & ONBEAT_LATE) != 0) == (info->latency_ns > r->fixed_delay));
}

/* What a message that was read must be, by its content and those before it. */
static void check(struct reader *r, enum way way, const struct content *message,
		  const onbeat_message *info)
{
	int64_t returned = now();
	uint64_t missing;

	if (info->flags & ONBEAT_REPEATED) {
		EXPECT(way == LATEST && r->last_capture >= 0 && info->gap == 0);
		EXPECT(info->capture_ns == r->last_capture);
		EXPECT(info->capture_ns + info->age_ns >= r->called);
		fprintf(out, "repeated\n");
		return;
	}
	missing = message->number - (r->last_capture < 0 ? 0 : r->last.number + 1);
	EXPECT(message->before <= info->capture_ns);
	if (missing == 0)
		EXPECT(message->last_capture == r->last_capture);
	/* The latest one's gap is that to the one before it, which it may have skipped. */
	if (way != LATEST)
		EXPECT(missing >= 256 || info->gap == missing);
	EXPECT(way == LATEST ? info->gap <= missing : 1);
	check_times(r, way, info, returned);
	r->skips |= way == LATEST && missing > info->gap;
	r->read++;
	r->lost += missing;
	r->late += (info->flags & ONBEAT_LATE) != 0;
	r->last = *message;
	r->last_capture = info->capture_ns;
	fprintf(out, "%s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %u %u %d\n", names[way],
		message->number, info->capture_ns, info->capture_ns + info->latency_ns,
		info->arrived_ns, info->gap, info->flags, info->arrived_ns > r->began);
}

static void listen(int64_t fixed_delay)
{
	struct reader r = { .descriptor = -1, .fixed_delay = fixed_delay, .last_capture = -1 };
	/* A reader that polls never selects: its descriptor says when it waits. */
	int polls = draw(2) == 0;
	onbeat_status status = ONBEAT_OK;
	onbeat_counters counted;
	struct content message;
	onbeat_message info;

	must(onbeat_listener_open(run, "c", sizeof(message), &r.in));
	must(onbeat_start(run));
	if (polls && onbeat_listener_descriptor(r.in, &r.descriptor) != ONBEAT_OK)
		r.descriptor = -1;
	while (status != ONBEAT_STOPPED) {
		enum way way = (enum way)draw(WAYS);

		if (way == POLL && r.descriptor < 0)
			way = SELECT;
		if (draw(4) == 0)
			onbeat_sleep_until(run, now() + (int64_t)draw(20 * PERIOD_NS), NULL);
		status = read_once(&r, way, &message, &info);
		if (status == ONBEAT_OK)
			check(&r, way, &message, &info);
		else
			EXPECT(status == ONBEAT_STOPPED || status == ONBEAT_EMPTY ||
			       status == ONBEAT_TIMED_OUT);
	}
	must(onbeat_listener_counters(r.in, &counted));
	EXPECT(counted.received + counted.lost == r.read + r.lost);
	EXPECT(r.skips || (counted.received == r.read && counted.late == r.late));
	EXPECT(counted.received >= r.read && counted.late >= r.late && counted.duplicate == 0);
	fprintf(out, "lost %" PRIu64 "\n", counted.lost);
	onbeat_listener_close(r.in);
}

int main(int count, char **arguments)
{
	EXPECT(count >= 3);
	state = 0x9e3779b97f4a7c15u ^ ((uint64_t)atoll(arguments[2]) << 20);
	for (int i = 0; i < 8; i++)
		draw(2);
	must(onbeat_open(&run));
	out = fopen(strcmp(arguments[1], "talk") == 0 ? "talker.log" : "listener.log", "w");
	EXPECT(out != NULL);
	if (strcmp(arguments[1], "talk") == 0)
		talk();
	else
		listen(count > 3 ? atoll(arguments[3]) : 0);
	fclose(out);
	onbeat_close(run);
	return 0;
}
