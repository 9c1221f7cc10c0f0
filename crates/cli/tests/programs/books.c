/*
 * Keeps its own books on every figure that the library reports of a channel, from what the messages
 * say and from the clock before and after each call, and ends with an error where they differ.
 * `books talk SEED` writes `c`, `books listen SEED D` reads it, each call drawn from the seed; with
 * `again` behind it each closes its end now and then and opens it again, as a program does that is
 * started again. With `step:FROM:UNTIL:BY` behind D or SEED one of the two hosts' clocks reads BY
 * more from FROM until UNTIL: no readings are compared across that. With `lifespan:NS` the channel
 * has that, and messages that have expired are missing. `books second TRANSPORT`
 * sends frames of `c` from a host that is not its talker.
 * `books interface TRANSPORT FIRST LOG talk|listen SEED D` does the same on `eth0`, without a run
 * and until SIGTERM: a program that is started again counts its messages from another number.
 * What was written, read and sent is in talker.log, listener.log and second.log, for others to
 * compare with the records.
 */
#define _GNU_SOURCE
#include "common.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whoever opens its ends again does so once in so many calls. */
#define AGAIN 60
/* What the second talker says is its number. */
#define SECOND UINT64_MAX

struct content {
	uint64_t number;	/* of the messages that were written, from 0 */
	uint64_t first;		/* of those since its talker was opened */
	int64_t before;		/* what the talker's clock read before the write */
	int64_t last_capture;	/* of the message before, as its write returned it */
#ifdef MORE
	unsigned char more[MORE]; /* makes it longer than a frame */
#endif
};

static onbeat *run;
static FILE *out;
static uint64_t state;
static int again;
static int has_second;
/* When some host's clock steps, when it steps back, and by how much; 0: it does not. */
static int64_t step_from, step_until, step_by;
/* The number of the first message. */
static uint64_t begin;
/* Of messages at the listener; 0: none. */
static int64_t lifespan;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

/* What makes messages longer follows from their number. */
static void fill(struct content *message)
{
#ifdef MORE
	for (size_t at = 0; at < MORE; at++)
		message->more[at] = (unsigned char)(message->number * 31 + at * 7 + at / 251);
#else
	(void)message;
#endif
}

static int is_filled(const struct content *message)
{
	struct content right = *message;

	fill(&right);
	return memcmp(&right, message, sizeof(right)) == 0;
}

static int64_t now(void)
{
	int64_t ns;

	must(onbeat_now(run, &ns));
	return ns;
}

/* Whether a reading is near a step of a clock: nothing is before or after it then. */
static int near(int64_t reading)
{
	int64_t width = llabs(step_by) + 60000000;

	return step_by != 0 && (llabs(reading - step_from) < width ||
				llabs(reading - step_until) < width);
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

/* Closes a talker, whose counters must be what was written since it was opened. */
static void end_talker(onbeat_talker *talker, const struct content *next, uint64_t refused)
{
	onbeat_counters counted;

	must(onbeat_talker_counters(talker, &counted));
	/* Who is stopped while it waits for capture + D has written. */
	EXPECT(counted.sent == next->number - next->first ||
	       (begin > 0 && counted.sent == next->number - next->first + 1));
	EXPECT(counted.rate_exceeded >= refused);
	onbeat_talker_close(talker);
}

static void talk(void)
{
	struct content message = { .number = begin, .first = begin, .last_capture = -1 };
	onbeat_status status = ONBEAT_OK;
	onbeat_talker *talker;
	uint64_t refused = 0;
	int64_t capture;

	must(onbeat_talker_open(run, "c", sizeof(message), &talker));
	must(onbeat_start(run));
	while (status != ONBEAT_STOPPED) {
		if (again && draw(AGAIN) == 0) {
			end_talker(talker, &message, refused);
			status = onbeat_talker_open(run, "c", sizeof(message), &talker);
			if (status == ONBEAT_STOPPED)
				return;
			must(status);
			fprintf(out, "again\n");
			message.first = message.number;
			refused = 0;
		}
		if (draw(3) > 0)
			onbeat_sleep_until(run, now() + (int64_t)draw(3 * PERIOD_NS), NULL);
		fill(&message);
		message.before = now();
		status = write_once(talker, &message, &capture);
		EXPECT(status == ONBEAT_OK || status == ONBEAT_STOPPED ||
		       status == ONBEAT_RATE_EXCEEDED);
		refused += status == ONBEAT_RATE_EXCEEDED;
		if (status != ONBEAT_OK)
			continue;
		EXPECT(near(capture) || near(message.before) ||
		       (capture >= message.before && capture > message.last_capture));
		fprintf(out, "%" PRIu64 " %" PRId64 "\n", message.number - message.first,
			capture);
		message.number++;
		message.last_capture = capture;
	}
	/* One for an instant after the end was refused before the end, others are only after it. */
	EXPECT(onbeat_sleep_until(run, INT64_MAX, NULL) == ONBEAT_STOPPED);
	EXPECT(onbeat_try_write(talker, &message, NULL) == ONBEAT_STOPPED);
	end_talker(talker, &message, refused);
}

/* How a reader waits and reads, and the name of it in the log. */
enum way { READ, READ_WAIT, READ_TIMEOUT, TRY_READ, LATEST, SELECT, POLL, WAYS };
static const char *const names[WAYS] = { "read", "read_wait", "read_timeout", "try_read",
					 "read_latest", "select", "poll" };

struct reader {
	onbeat_listener *in;
	int descriptor;		/* -1: none */
	int joins;		/* it was opened when the talker had written already */
	int64_t fixed_delay;
	int64_t began;		/* to wait: before the select or poll, or the read */
	int64_t called;		/* the call that hands the message over */
	struct content last;
	int64_t last_capture;	/* -1: nothing was read yet */
	uint64_t read, lost, late;
	uint64_t expired;	/* missing, but not lost */
	uint64_t expired_before; /* of the last message, as counted */
	int skips;		/* read_latest has skipped some that may have come or be lost */
	int unknown;		/* and some of which nobody can tell here that they were */
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

static uint64_t expired_so_far(const struct reader *r)
{
	onbeat_counters counted;

	must(onbeat_listener_counters_sized(r->in, sizeof(counted), &counted));
	return counted.expired;
}

/* Whether a frame that was dropped may have ended a select: a second talker's, one of the future,
 * or one that a clock that was set back makes a copy; or one that is a part of a message only. */
static int others_wake(const struct reader *r)
{
	onbeat_counters counted;

	must(onbeat_listener_counters(r->in, &counted));
	return sizeof(struct content) > 1476 || has_second || counted.rejected_future > 0 ||
	       counted.duplicate > 0 || expired_so_far(r) > 0;
}

/* What the times of a new message must be. */
static void check_times(const struct reader *r, enum way way, const onbeat_message *info,
			int64_t returned)
{
	int64_t receipt = info->capture_ns + info->latency_ns;
	int64_t handed_over = info->capture_ns + info->age_ns;

	int set = near(r->began) || near(r->called) || near(returned);

	EXPECT(set || (r->called <= handed_over && handed_over <= returned));
	EXPECT(set || (info->arrived_ns <= receipt && receipt <= handed_over));
	if (set)
		;
	else if (r->descriptor >= 0)
		EXPECT(receipt >= r->called);
	else if (way == SELECT && info->arrived_ns > r->began)
		EXPECT(receipt >= r->began && (receipt <= r->called || others_wake(r)));
	else if (way == READ && info->arrived_ns > r->called)
		EXPECT(receipt >= r->called);
	if (way == READ_WAIT)
		EXPECT(info->age_ns == r->fixed_delay - info->wakeup_error_ns);
	else
		EXPECT(info->wakeup_error_ns == 0);
	EXPECT(((info->flags & ONBEAT_LATE) != 0) == (info->latency_ns > r->fixed_delay));
}

/* Whether there may have been messages before this one that it does not tell of. */
static int cannot_tell(const struct reader *r, const struct content *message)
{
	if (r->last_capture < 0)
		return r->joins || message->first != begin;
	return message->first != r->last.first;
}

/*
 * How many messages are missing before this one. The last messages of a talker before it was opened
 * again are unknown, and so is what came before an end was opened again.
 */
static uint64_t missing_before(const struct reader *r, const struct content *message)
{
	if (r->last_capture < 0 && r->joins)
		return 0;
	if (r->last_capture < 0 || message->first != r->last.first)
		return message->number - message->first;
	return message->number - r->last.number - 1;
}

/*
 * The same, with the messages of which fragments came: the last ones before the talker was opened
 * again, and the first ones after the listener was.
 */
static uint64_t most_missing_before(const struct reader *r, const struct content *message)
{
#ifdef MORE
	if (r->last_capture < 0 && r->joins)
		return message->number - r->last.number;
	if (r->last_capture >= 0 && message->first != r->last.first)
		return message->number - r->last.number - 1;
#endif
	return missing_before(r, message);
}

/* What a message that was read must be, by its content and those before it. */
static void check(struct reader *r, enum way way, const struct content *message,
		  const onbeat_message *info)
{
	int64_t returned = now();
	uint64_t missing, most, expired;
	int set, wrong;

	if (info->flags & ONBEAT_REPEATED) {
		EXPECT(way == LATEST && r->last_capture >= 0 && info->gap == 0);
		EXPECT(info->capture_ns == r->last_capture);
		EXPECT(lifespan == 0 || info->age_ns <= lifespan);
		EXPECT(info->capture_ns + info->age_ns >= r->called || near(r->called) ||
		       near(returned));
		fprintf(out, "repeated\n");
		return;
	}
	EXPECT(message->number != SECOND && is_filled(message));
	/* When the call came for it, it was not older. */
	EXPECT(lifespan == 0 || near(r->called) || near(info->capture_ns) ||
	       r->called - info->capture_ns <= lifespan);
	expired = expired_so_far(r) - r->expired_before;
	missing = missing_before(r, message);
	most = most_missing_before(r, message);
	EXPECT(expired == 0 || (lifespan > 0 && (expired <= most || cannot_tell(r, message))));
	missing -= expired < missing ? expired : missing;
	/* Those that expired, and what they tell, may be of before the talker was opened again. */
	if (r->last_capture >= 0 && message->first == r->last.first)
		most -= expired < most ? expired : most;
	else if (expired > 0)
		most = message->number - (r->last_capture < 0 ? 0 : r->last.number + 1);
	set = near(info->capture_ns) || near(message->before);
	EXPECT(set || message->before <= info->capture_ns);
	if (missing == 0 && expired == 0 && r->last_capture >= 0 &&
	    message->first == r->last.first)
		EXPECT(message->last_capture == r->last_capture);
	/* The latest one's gap is that to the one before it, which it may have skipped. */
	wrong = info->gap > most || (info->gap < missing && !set);
	if (way != LATEST && missing < 256 && wrong) {
		fprintf(stderr, "%s: %" PRIu64 " missing, a gap of %" PRIu32 "; number %" PRIu64
			" of %" PRIu64 ", before it %" PRIu64 " of %" PRIu64 ", capture %" PRId64
			" after %" PRId64 ", flags %" PRIx32 "\n", names[way], missing, info->gap,
			message->number, message->first, r->last.number, r->last.first,
			info->capture_ns, r->last_capture, info->flags);
		expect(0, "gaps are what is missing");
	}
	/* The time between two captures does not tell then how many there were. */
	r->unknown |= way != LATEST && info->gap != missing;
	EXPECT(way == LATEST && !cannot_tell(r, message) ? info->gap <= most : 1);
	check_times(r, way, info, returned);
	r->unknown |= way == LATEST && cannot_tell(r, message);
	r->skips |= way == LATEST && (missing > info->gap || cannot_tell(r, message));
	r->read++;
	r->lost += missing;
	r->expired += expired;
	r->expired_before += expired;
	r->late += (info->flags & ONBEAT_LATE) != 0;
	r->last = *message;
	r->last_capture = info->capture_ns;
	fprintf(out, "%s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %u %u %d\n", names[way],
		message->number - message->first, info->capture_ns,
		info->capture_ns + info->latency_ns,
		info->arrived_ns, info->gap, info->flags, info->arrived_ns > r->began);
}

static onbeat_status begin_listener(struct reader *r, int polls)
{
	onbeat_status status = onbeat_listener_open(run, "c", sizeof(struct content), &r->in);

	if (status != ONBEAT_OK)
		return status;
	r->descriptor = -1;
	if (polls && onbeat_listener_descriptor(r->in, &r->descriptor) != ONBEAT_OK)
		r->descriptor = -1;
	r->last_capture = -1;
	r->read = r->lost = r->late = r->expired = r->expired_before = 0;
	r->skips = r->unknown = 0;
	return ONBEAT_OK;
}

/* Closes a listener, whose counters must be what was read since it was opened. */
static void end_listener(struct reader *r)
{
	onbeat_counters counted;

	must(onbeat_listener_counters_sized(r->in, sizeof(counted), &counted));
	/* Those behind the last message that was read: nothing but the clock tells of them. */
	r->unknown |= counted.expired > r->expired_before;
	r->expired += counted.expired - r->expired_before;
	counted.received -= counted.expired;
	EXPECT(lifespan > 0 || counted.expired == 0);
	EXPECT(step_by || counted.received + counted.lost >= r->read + r->lost);
	EXPECT(r->unknown || counted.received + counted.lost == r->read + r->lost);
	EXPECT(r->skips || (counted.received == r->read &&
			    counted.late - r->late <= r->expired && counted.late >= r->late));
	EXPECT(counted.received >= r->read && counted.late >= r->late);
	/* A clock that is set back costs a message. */
	EXPECT(counted.duplicate == 0 || step_by);
	fprintf(out, "lost %" PRIu64 "\n", counted.lost);
	fprintf(out, "expired %" PRIu64 "\n", counted.expired);
	fprintf(out, "others %" PRIu64 "\n", counted.rejected_talker);
	fprintf(out, "future %" PRIu64 "\n", counted.rejected_future);
	onbeat_listener_close(r->in);
}

static void listen_to(int64_t fixed_delay)
{
	/* Whoever reads on an interface may come when the talker has written for long. */
	struct reader r = { .fixed_delay = fixed_delay, .joins = begin > 0 };
	/* A reader that polls never selects: its descriptor says when it waits. */
	int polls = draw(2) == 0;
	onbeat_status status = ONBEAT_OK;
	struct content message;
	onbeat_message info;

	must(begin_listener(&r, polls));
	must(onbeat_start(run));
	while (status != ONBEAT_STOPPED) {
		enum way way = (enum way)draw(WAYS);

		if (again && draw(AGAIN) == 0) {
			end_listener(&r);
			r.joins = 1;
			status = begin_listener(&r, polls);
			if (status == ONBEAT_STOPPED)
				return;
			must(status);
			fprintf(out, "again\n");
		}
		if (way == POLL && r.descriptor < 0)
			way = SELECT;
		if (draw(4) == 0)
			onbeat_sleep_until(run, now() + (int64_t)draw(20 * PERIOD_NS), NULL);
		status = read_once(&r, way, &message, &info);
		/* Who is stopped while it waits for capture + D has read. */
		if (status == ONBEAT_STOPPED && way == READ_WAIT && begin > 0)
			r.unknown = r.skips = 1;
		if (status == ONBEAT_OK)
			check(&r, way, &message, &info);
		else
			EXPECT(status == ONBEAT_STOPPED || status == ONBEAT_EMPTY ||
			       status == ONBEAT_TIMED_OUT);
	}
	end_listener(&r);
}

/* Moves into the namespace of the host, where its end's socket is. */
static void move_to_the_host(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		socklen_t length = sizeof(int);
		int domain = 0, namespace;

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
		    (domain != AF_PACKET && domain != AF_INET && domain != AF_XDP))
			continue;
		namespace = ioctl(fd, SIOCGSKNS);
		EXPECT(namespace >= 0 && setns(namespace, CLONE_NEWNET) == 0);
		close(namespace);
		return;
	}
	expect(0, "an end in a namespace has a socket");
}

/* A socket for Ethernet frames, or for datagrams to the channel's group; names its source. */
static int second_socket(int udp)
{
	struct sockaddr_ll link = { .sll_family = AF_PACKET };
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_port = htons(17220) }, own;
	struct ip_mreqn through = { .imr_ifindex = (int)if_nametoindex("eth0") };
	socklen_t length = sizeof(own);
	char text[INET_ADDRSTRLEN];
	int fd;

	if (!udp) {
		fd = socket(AF_PACKET, SOCK_RAW, 0);
		link.sll_ifindex = through.imr_ifindex;
		EXPECT(fd >= 0 && bind(fd, (struct sockaddr *)&link, sizeof(link)) == 0);
		fprintf(out, "02:00:00:00:0b:ad\n");
		return fd;
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	inet_pton(AF_INET, "239.0.0.1", &group.sin_addr);
	EXPECT(fd >= 0);
	EXPECT(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &through, sizeof(through)) == 0);
	EXPECT(connect(fd, (struct sockaddr *)&group, sizeof(group)) == 0);
	EXPECT(getsockname(fd, (struct sockaddr *)&own, &length) == 0);
	inet_ntop(AF_INET, &own.sin_addr, text, sizeof(text));
	fprintf(out, "%s:%d\n", text, ntohs(own.sin_port));
	return fd;
}

/* Messages of the right shape, as docs/channels.md has it, that are not the channel's talker's. */
static void second(int udp)
{
	unsigned char frame[18 + 24 + sizeof(struct content)] = { 1, 0, 0x5e, 0, 0, 1,
								  2, 0, 0,    0, 0x0b, 0xad };
	struct content message = { .number = SECOND, .last_capture = -1 };
	unsigned char *unit = frame + 18, *start = udp ? unit - 4 : frame;
	size_t length = sizeof(frame) - (size_t)(start - frame);
	uint32_t sent = 0, timestamp;
	onbeat_talker *own;
	int fd;

	must(onbeat_talker_open(run, "d", 8, &own));
	move_to_the_host();
	fd = second_socket(udp);
	must(onbeat_start(run));
	memcpy(frame + 12, "\x81\x00\x60\x02\x22\xf0", 6);
	memcpy(unit, "\x7f\x81", 2);
	unit[11] = 1;			/* the stream */
	unit[21] = (unsigned char)sizeof(message);
	unit[22] = 99;			/* its start */
	memcpy(unit + 24, &message, sizeof(message));
	/* The channel's talker is the one that is heard first. */
	while (onbeat_sleep_until(run, sent ? now() + 7 * PERIOD_NS : 100 * PERIOD_NS, NULL) ==
	       ONBEAT_OK) {
		timestamp = htonl((uint32_t)now());
		memcpy(unit + 12, &timestamp, sizeof(timestamp));
		unit[2] = (unsigned char)sent;
		if (udp)
			memcpy(start, &(uint32_t){ htonl(sent) }, 4);
		EXPECT(send(fd, start, length, 0) == (ssize_t)length);
		sent++;
	}
	fprintf(out, "%u\n", sent);
	onbeat_talker_close(own);
}

static void on_signal(int number)
{
	(void)number;
	onbeat_stop(run);
}

/* Takes the arguments of `interface` and leaves those behind it. */
static void open_interface(char ***arguments, int *count)
{
	onbeat_interface settings = { .name = "eth0", .flags = ONBEAT_TIMESTAMPS };
	onbeat_channel c = { .name = "c", .destination = { 1, 0, 0x5e, 0, 0, 1 }, .stream_id = 1 };

	EXPECT(*count >= 8);
	settings.transport = (uint32_t)atoi((*arguments)[2]);
	begin = strtoull((*arguments)[3], NULL, 10);
	c.size = sizeof(struct content);
	c.interval_ns = PERIOD_NS;
	c.fixed_delay_ns = atoll((*arguments)[7]);
	must(onbeat_open_interface(&settings, &c, 1, &run));
	signal(SIGTERM, on_signal);
	*arguments += 4;
	*count -= 4;
}

static void log_to(const char *name)
{
	out = fopen(name, "w");
	EXPECT(out != NULL);
}

int main(int count, char **arguments)
{
	const char *log = NULL;

	EXPECT(count >= 3);
	if (strcmp(arguments[1], "interface") == 0) {
		open_interface(&arguments, &count);
		log = arguments[0];
	}
	state = 0x9e3779b97f4a7c15u ^ ((uint64_t)atoll(arguments[2]) << 20);
	for (int i = 0; i < 8; i++)
		draw(2);
	if (log == NULL)
		must(onbeat_open(&run));
	for (int i = 3; i < count; i++)
		sscanf(arguments[i], "lifespan:%" SCNd64, &lifespan);
	for (int i = 3; i < count; i++)
		sscanf(arguments[i], "step:%" SCNd64 ":%" SCNd64 ":%" SCNd64, &step_from,
		       &step_until, &step_by);
	again = strcmp(arguments[count - 1], "again") == 0;
	has_second = strcmp(arguments[count - 1], "beside") == 0;
	if (strcmp(arguments[1], "talk") == 0) {
		log_to(log == NULL ? "talker.log" : log);
		talk();
	} else if (strcmp(arguments[1], "second") == 0) {
		log_to("second.log");
		second(strcmp(arguments[2], "udp4") == 0);
	} else {
		EXPECT(count > 3);
		log_to(log == NULL ? "listener.log" : log);
		listen_to(atoll(arguments[3]));
	}
	fclose(out);
	onbeat_close(run);
	return 0;
}
