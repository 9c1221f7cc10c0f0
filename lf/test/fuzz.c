/*
 * fuzz.c: what comes from outside, from random seeds: tables, headers, and a federate that sends
 * over channels and a socket at once. Onbeat is replaced by a queue and a clock for each seed.
 *
 *   fuzz FIRST COUNT     seeds; stops at the first that finds something, and names it
 *   fuzz                 a table from standard input: prints its rows, or why it has none
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../src/internal.h"
#include "../src/peer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t seed, state;

static uint64_t draw(uint64_t below)
{
	/* SplitMix64. */
	uint64_t z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % below;
}

#define HOLDS(condition)                                                                    \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "seed %" PRIu64 ": line %d: %s\n", seed, __LINE__,  \
				#condition);                                                \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

_Noreturn void lf_fatal(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nseed %" PRIu64 "\n", seed);
	exit(1);
}

/* --- tables ----------------------------------------------------------------------------------- */

static const char *const words[] = { "onbeat-lf-channels 1\n", "\n",  "#",   " ",  "\t", "0",
				     "1",     "65535", "65536", "1455", "1456", "a", "c0", "\r\n",
				     "-1",    "600000000000", "600000000001",
				     "99999999999999999999", "a.b[3]",
				     "a_name_that_has_one_and_thirty_.", "\xff", "\x01" };

static size_t random_text(char *text, size_t size)
{
	size_t length = 0;
	if (draw(4) > 0)
		length = (size_t)sprintf(text, "onbeat-lf-channels 1\n");
	for (uint64_t rows = draw(12); rows > 0 && length + 200 < size; rows--) {
		if (draw(3) > 0) {
			/* Names of up to 40 characters now and then. */
			int zeros = draw(6) ? 0 : (int)draw(40);
			length += (size_t)sprintf(
				text + length, "%u p %u %u c%0*u %u %u\n", (unsigned)draw(3),
				(unsigned)draw(4), (unsigned)draw(6), zeros, (unsigned)draw(9),
				(unsigned)draw(1500), (unsigned)draw(3000000));
			continue;
		}
		for (uint64_t count = draw(9); count > 0; count--)
			length += (size_t)sprintf(text + length, "%s%s",
						  words[draw(sizeof(words) / sizeof(*words))],
						  draw(2) ? " " : "");
	}
	if (length > 0 && draw(4) == 0)
		text[draw(length)] = (char)draw(256);
	return draw(8) == 0 ? draw(length + 1) : length;
}

static void check_rows(const struct lf_table *table)
{
	HOLDS(table->count <= LF_ROWS);
	for (size_t i = 0; i < table->count; i++) {
		const struct lf_row *row = &table->rows[i];
		size_t length = strnlen(row->channel, LF_NAME);
		HOLDS(length > 0 && length < LF_NAME);
		HOLDS(row->octets <= LF_PAYLOAD_MAX && row->delay_ns > 0 && row->from != row->to);
		for (size_t j = 0; j < i; j++) {
			const struct lf_row *other = &table->rows[j];
			HOLDS(strcmp(row->channel, other->channel) != 0);
			HOLDS(row->to != other->to || row->to_port != other->to_port);
		}
	}
}

/* Returns the rows, so that a run can show that some tables are right and some are not. */
static size_t check_table(void)
{
	char why[160] = "";
	struct lf_table table;
	char *text = malloc(8192);
	HOLDS(text);
	size_t length = random_text(text, 8192);
	/* Exactly as long as it is, for the sanitizer. */
	char *exact = malloc(length ? length : 1);
	HOLDS(exact);
	memcpy(exact, text, length);
	size_t rows = 0;
	if (lf_table_parse(exact, length, &table, why, sizeof(why))) {
		check_rows(&table);
		rows = table.count;
	} else {
		HOLDS(why[0] && !strchr(why, '\n') && !table.rows && table.count == 0);
	}
	free(table.rows);
	free(exact);
	free(text);
	return rows;
}

static void check_header(void)
{
	struct lf_header header, again;
	unsigned char octets[LF_HEADER], back[LF_HEADER];
	for (size_t i = 0; i < LF_HEADER; i++)
		octets[i] = (unsigned char)draw(256);
	lf_decode(octets, &header);
	lf_encode(&header, back);
	HOLDS(memcmp(octets, back, LF_HEADER) == 0);
	lf_decode(back, &again);
	HOLDS(header.type == again.type && header.time == again.time &&
	      header.microstep == again.microstep && header.length == again.length);
}

/* --- a federate that sends -------------------------------------------------------------------- */

#define CHANNELS 3
#define SENT_MAX 200
#define DELAY 2000000

enum what { CHANNEL, WRONG, ABSENT, PHYSICAL, TAGGED, END };

struct sent {
	enum what what;
	int64_t at_ns;
	int64_t arrives_ns;
	uint16_t port;
	uint32_t length;
	bool has_arrived;
	bool is_read;
};

static struct lf_row rows[CHANNELS];
static struct sent sent[SENT_MAX];
static size_t sent_count;
static int64_t clock_ns;
static int sockets[2];

/* The number of what was sent is in its tag. */
static size_t octets_of(size_t number, unsigned char out[LF_MESSAGE_MAX])
{
	const struct sent *one = &sent[number];
	struct lf_header header = { LF_TYPE_TAGGED, one->port, 1, one->length, (int64_t)number, 0 };
	unsigned char head[LF_HEADER];
	size_t size = LF_HEADER;
	if (one->what == WRONG && draw(3) == 0)
		header.type = (uint8_t)draw(18);
	else if (one->what == WRONG && draw(2) == 0)
		header.length = 1 + rows[one->port].octets + (uint32_t)draw(1u << 31);
	else if (one->what == WRONG)
		header.federate = 7;
	lf_encode(&header, head);
	memcpy(out, head, LF_HEADER);
	if (one->what == ABSENT) {
		out[0] = LF_TYPE_ABSENT;
		memcpy(out + 5, head + 9, 12);
		return LF_ABSENT;
	}
	if (one->what == PHYSICAL) {
		out[0] = LF_TYPE_PHYSICAL;
		size = 9;
	}
	for (size_t i = 0; i < one->length; i++)
		out[size + i] = (unsigned char)number;
	return size + one->length;
}

/* What arrives by now goes into the socket, or can be read from its channel. */
static void arrive(void)
{
	unsigned char octets[LF_MESSAGE_MAX];
	for (size_t i = 0; i < sent_count; i++) {
		struct sent *one = &sent[i];
		if (one->has_arrived || one->arrives_ns > clock_ns)
			continue;
		one->has_arrived = true;
		if (one->what == END) {
			shutdown(sockets[1], SHUT_WR);
		} else if (one->what >= ABSENT) {
			size_t size = octets_of(i, octets);
			HOLDS(write(sockets[1], octets, size) == (ssize_t)size);
		}
	}
}

static void random_federate(void)
{
	int64_t at = 0, socket_at = 0, channel_at[CHANNELS] = { 0 };
	for (uint16_t i = 0; i < CHANNELS; i++) {
		rows[i] = (struct lf_row){ .from = 0, .to = 1, .to_port = i, .delay_ns = DELAY };
		rows[i].octets = (uint32_t)draw(LF_PAYLOAD_MAX + 1);
		snprintf(rows[i].channel, LF_NAME, "c%u", i);
	}
	sent_count = 2 + draw(SENT_MAX - 2);
	for (size_t i = 0; i < sent_count; i++) {
		struct sent *one = &sent[i];
		*one = (struct sent){ .what = (enum what)draw(5), .at_ns = at += draw(700000) };
		one->port = (uint16_t)draw(CHANNELS + (one->what == ABSENT));
		if (i == sent_count - 1)
			one->what = END;
		bool is_channel = one->what <= WRONG;
		/* In the order of sending, and over channels within the fixed delay. */
		int64_t *last = is_channel ? &channel_at[one->port] : &socket_at;
		int64_t arrives = at + (int64_t)draw(is_channel ? DELAY : DELAY / 2);
		*last = one->arrives_ns = arrives > *last ? arrives : *last;
		if (is_channel)
			one->length = (uint32_t)draw(rows[one->port].octets + 1);
		else if (one->what == PHYSICAL || one->what == TAGGED)
			one->length = (uint32_t)draw(draw(2) ? 3 : 900);
		if (one->what >= PHYSICAL)
			one->port = CHANNELS;
	}
}

/* --- Onbeat, for that ------------------------------------------------------------------------- */

onbeat *lf_member_context(void)
{
	return NULL;
}

onbeat_status onbeat_now(onbeat *context, int64_t *now_ns)
{
	(void)context;
	*now_ns = clock_ns;
	return ONBEAT_OK;
}

onbeat_status onbeat_try_read(onbeat_listener *listener, void *message, onbeat_message *info)
{
	uint16_t port = (uint16_t)((const struct lf_row *)(const void *)listener - rows);
	for (size_t i = 0; i < sent_count; i++) {
		struct sent *one = &sent[i];
		if (one->what > WRONG || one->port != port || one->is_read || !one->has_arrived)
			continue;
		unsigned char octets[LF_MESSAGE_MAX] = { 0 };
		octets_of(i, octets);
		memcpy(message, octets, LF_HEADER + rows[port].octets);
		*info = (onbeat_message){ .latency_ns = clock_ns - one->at_ns };
		one->is_read = true;
		return ONBEAT_OK;
	}
	return ONBEAT_EMPTY;
}

onbeat_status onbeat_listener_descriptor(const onbeat_listener *listener, int *descriptor)
{
	(void)listener;
	(void)descriptor;
	return ONBEAT_E_REFUSED;
}

onbeat_status onbeat_select(onbeat *context, const onbeat_listener *const *listeners,
			    size_t count, int64_t timeout_ns, size_t *index)
{
	(void)context;
	(void)listeners;
	(void)index;
	HOLDS(count == CHANNELS && timeout_ns > 0);
	clock_ns += 1 + (int64_t)draw((uint64_t)timeout_ns);
	arrive();
	return ONBEAT_TIMED_OUT;
}

onbeat_status onbeat_listener_counters_sized(const onbeat_listener *listener, size_t size,
					     onbeat_counters *out)
{
	(void)listener;
	memset(out, 0, size);
	return ONBEAT_OK;
}

const char *onbeat_last_error(void)
{
	return "";
}

int lf_socket_of(void *net)
{
	return *(int *)net;
}

void lf_run_is_over(void)
{
	HOLDS(false);
}

int lf_read_socket(void *net, size_t octets, unsigned char *buffer)
{
	size_t done = 0;
	while (done < octets) {
		ssize_t got = read(*(int *)net, buffer + done, octets - done);
		if (got <= 0) {
			close(*(int *)net);
			*(int *)net = -1;
			return -1;
		}
		done += (size_t)got;
	}
	return 0;
}

/* --- the runtime, for that -------------------------------------------------------------------- */

static bool delivered[SENT_MAX];

/* What must have come before this one has. */
static void check_order(size_t number)
{
	const struct sent *one = &sent[number];
	HOLDS(!delivered[number]);
	delivered[number] = true;
	for (size_t i = 0; i < number; i++) {
		const struct sent *before = &sent[i];
		bool is_same = before->what == one->what && before->port == one->port;
		bool is_behind = before->what == CHANNEL && before->port == one->port &&
				 one->what == ABSENT;
		bool is_socket = before->what >= PHYSICAL && one->what >= PHYSICAL;
		if (is_same || is_behind || is_socket)
			HOLDS(delivered[i] || before->what == WRONG);
	}
}

static void read_all(struct peer *peer, int *net)
{
	unsigned char octets[LF_MESSAGE_MAX], want[LF_MESSAGE_MAX];
	while (lf_peer_read(peer, net, 1, octets) == 0) {
		size_t size = octets[0] == LF_TYPE_ABSENT   ? LF_ABSENT :
			      octets[0] == LF_TYPE_PHYSICAL ? 9 :
							      LF_HEADER;
		HOLDS(lf_peer_read(peer, net, size - 1, octets + 1) == 0);
		size_t number = octets[9];
		if (octets[0] == LF_TYPE_ABSENT) {
			number = octets[5];
		} else {
			size_t length = lf_decode32(octets + 5);
			HOLDS(size + length <= sizeof(octets));
			HOLDS(lf_peer_read(peer, net, length, octets + size) == 0);
			/* A physical message has no tag: the next in order. */
			if (octets[0] == LF_TYPE_PHYSICAL)
				for (number = 0; delivered[number] ||
						 sent[number].what != PHYSICAL; number++)
					HOLDS(number < sent_count);
			size += length;
		}
		HOLDS(number < sent_count);
		HOLDS(octets_of(number, want) == size && memcmp(octets, want, size) == 0);
		check_order(number);
	}
}

static void check_peer(void)
{
	random_federate();
	memset(delivered, 0, sizeof(delivered));
	clock_ns = 0;
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	int size = 1 << 20;
	setsockopt(sockets[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	arrive();
	struct peer *peer = lf_peer_new(0);
	for (size_t i = 0; i < CHANNELS; i++)
		lf_peer_add(peer, &rows[i], (onbeat_listener *)(void *)&rows[i]);
	read_all(peer, &sockets[0]);
	/* At its end all has come that was right. */
	for (size_t i = 0; i < sent_count; i++)
		HOLDS(delivered[i] || sent[i].what == WRONG || sent[i].what == END);
	close(sockets[1]);
	free(peer);
}

static int print_table(void)
{
	static char text[LF_TABLE_OCTETS + 2];
	char why[160];
	struct lf_table table;
	size_t length = fread(text, 1, sizeof(text), stdin);
	if (!lf_table_parse(text, length, &table, why, sizeof(why))) {
		printf("%s\n", why);
		return 1;
	}
	for (size_t i = 0; i < table.count; i++)
		printf("%u %u %u %s %" PRIu32 " %" PRId64 "\n", table.rows[i].from,
		       table.rows[i].to, table.rows[i].to_port, table.rows[i].channel,
		       table.rows[i].octets, table.rows[i].delay_ns);
	free(table.rows);
	return 0;
}

int main(int argc, char **argv)
{
	size_t right = 0, count = 0;
	if (argc == 1)
		return print_table();
	if (argc != 3)
		return 2;
	seed = strtoull(argv[1], NULL, 10);
	for (count = strtoull(argv[2], NULL, 10); count > 0; count--, seed++) {
		state = seed;
		for (int i = 0; i < 20; i++)
			right += check_table() > 0;
		check_header();
		check_peer();
	}
	printf("%zu tables with rows\n", right);
	return right == 0;
}
