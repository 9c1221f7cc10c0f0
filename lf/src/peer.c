/*
 * peer.c: merges the channels and the socket that come from a federate.
 *
 * Two things must not overtake a message of a channel. That a port is absent comes over the socket;
 * with it the runtime takes all earlier tags of the port as known. And when the socket ends it
 * takes all tags as known. What was sent before either is here within the channel's fixed delay.
 * So both are held for that long.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "peer.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Messages about absent ports that are held at most; more stay in the socket. */
#define HELD 256
/* How often a closed socket is looked for, and in virtual time any octet of it. */
#define LOOK_NS 100000000
#define LOOK_VIRTUAL_NS 1000000
/* Channels from one federate to another at most: as many as a run can wait for. */
#define INS 255

/* A receiving end. */
struct in {
	const struct lf_row *row;
	onbeat_listener *end;
	uint64_t received;
	uint64_t rejected;
	uint64_t late;
	int64_t latest_ns;
};

struct held {
	int64_t due_ns;
	unsigned char octets[LF_ABSENT];
};

/* Whose octets the runtime is reading. */
enum source { NOBODY, OURS, SOCKET };

struct peer {
	uint16_t federate;
	struct in ins[INS];
	size_t in_count;
	bool is_over;
	/* The message that is being read: the sizes of its pieces, and which one is next. */
	enum source source;
	size_t pieces[3];
	size_t piece_count;
	size_t piece;
	unsigned char message[LF_MESSAGE_MAX];
	size_t at;
	struct held held[HELD];
	size_t first_held;
	size_t held_count;
	bool has_ended;
	int64_t ended_due_ns;
};

struct peer *lf_peer_new(uint16_t federate)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	if (!peer)
		lf_fatal("there is no memory for the channels");
	peer->federate = federate;
	return peer;
}

void lf_peer_add(struct peer *peer, const struct lf_row *row, onbeat_listener *end)
{
	if (peer->in_count == INS)
		lf_fatal("more than %d channels come from federate %u", INS, peer->federate);
	peer->ins[peer->in_count++] = (struct in){ .row = row, .end = end };
}

void lf_peer_print(struct peer *peer, int me)
{
	for (size_t i = 0; i < peer->in_count; i++) {
		const struct in *in = &peer->ins[i];
		onbeat_counters counters = { 0 };
		onbeat_listener_counters_sized(in->end, sizeof(counters), &counters);
		fprintf(stderr,
			"onbeat_lf: federate %d: %s: received %" PRIu64 ", late %" PRIu64
			", latest %" PRId64 " ns, rejected %" PRIu64 ", lost %" PRIu64 "\n",
			me, in->row->channel, in->received, in->late, in->latest_ns,
			in->rejected, counters.lost);
	}
}

static int64_t now(void)
{
	int64_t now_ns = INT64_MAX;
	onbeat_now(lf_member_context(), &now_ns);
	return now_ns;
}

/* Says how the runtime reads the message that `source` has. */
static void begin(struct peer *peer, enum source source, size_t rest, size_t pieces)
{
	peer->source = source;
	peer->pieces[0] = 1;
	peer->pieces[1] = rest;
	peer->pieces[2] = 0;
	peer->piece_count = pieces;
	peer->piece = 0;
	peer->at = 0;
}

static const struct in *in_of(const struct peer *peer, uint16_t port)
{
	for (size_t i = 0; i < peer->in_count; i++)
		if (peer->ins[i].row->to_port == port)
			return &peer->ins[i];
	return NULL;
}

/* --- channels --------------------------------------------------------------------------------- */

/* Whether a message of a channel is one for its port; then it is the one that is being read. */
static bool accept(struct peer *peer, struct in *in, const onbeat_message *info)
{
	struct lf_header header;
	lf_decode(peer->message, &header);
	if (header.type != LF_TYPE_TAGGED || header.port != in->row->to_port ||
	    header.federate != in->row->to || header.length > in->row->octets) {
		in->rejected++;
		return false;
	}
	/* Physically late, whatever the runtime thinks of its tag. */
	int64_t late_ns = info->latency_ns - in->row->delay_ns;
	in->received++;
	if (late_ns > 0)
		in->late++;
	if (late_ns > in->latest_ns)
		in->latest_ns = late_ns;
	begin(peer, OURS, LF_HEADER - 1, 3);
	peer->pieces[2] = header.length;
	return true;
}

static bool take_from_channels(struct peer *peer)
{
	for (size_t i = 0; i < peer->in_count && !peer->is_over; i++) {
		struct in *in = &peer->ins[i];
		onbeat_message info;
		onbeat_status status;
		while ((status = onbeat_try_read(in->end, peer->message, &info)) == ONBEAT_OK)
			if (accept(peer, in, &info))
				return true;
		if (status == ONBEAT_STOPPED) {
			peer->is_over = true;
			lf_run_is_over();
		} else if (status < 0) {
			lf_fatal("%s: not received: %s", in->row->channel, onbeat_last_error());
		}
	}
	return false;
}

/* --- the socket ------------------------------------------------------------------------------- */

static bool take_held(struct peer *peer)
{
	struct held *held = &peer->held[peer->first_held];
	if (peer->held_count == 0 || (held->due_ns > now() && !peer->is_over))
		return false;
	memcpy(peer->message, held->octets, LF_ABSENT);
	peer->first_held = (peer->first_held + 1) % HELD;
	peer->held_count--;
	begin(peer, OURS, LF_ABSENT - 1, 2);
	return true;
}

/* One that need not be held waits for those before it. */
static void hold(struct peer *peer, const struct in *in)
{
	struct held *held = &peer->held[(peer->first_held + peer->held_count) % HELD];
	held->due_ns = now() + (in ? in->row->delay_ns : 0);
	memcpy(held->octets, peer->message, LF_ABSENT);
	peer->held_count++;
}

static void end_socket(struct peer *peer)
{
	int64_t longest = 0;
	for (size_t i = 0; i < peer->in_count; i++)
		if (peer->ins[i].row->delay_ns > longest)
			longest = peer->ins[i].row->delay_ns;
	peer->has_ended = true;
	peer->ended_due_ns = now() + longest;
}

/* Begins with what the socket has. Whether the runtime can read on. */
static bool take_from_socket(struct peer *peer, void *net)
{
	if (lf_read_socket(net, 1, peer->message) != 0) {
		end_socket(peer);
		return false;
	}
	switch (peer->message[0]) {
	case LF_TYPE_ABSENT:
		if (lf_read_socket(net, LF_ABSENT - 1, peer->message + 1) != 0) {
			end_socket(peer);
			return false;
		}
		hold(peer, in_of(peer, lf_decode16(peer->message + 1)));
		return false;
	case LF_TYPE_PHYSICAL:
		begin(peer, SOCKET, 8, 3);
		return true;
	case LF_TYPE_TAGGED:
		begin(peer, SOCKET, LF_HEADER - 1, 3);
		return true;
	default:
		/* The runtime will close the connection. */
		begin(peer, SOCKET, 0, 1);
		return true;
	}
}

static bool has_octets(int descriptor)
{
	struct pollfd one = { .fd = descriptor, .events = POLLIN };
	return poll(&one, 1, 0) > 0;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void wait_virtual(struct peer *peer, int64_t at_most_ns)
{
	const onbeat_listener *ends[INS];
	size_t index;
	for (size_t i = 0; i < peer->in_count; i++)
		ends[i] = peer->ins[i].end;
	if (at_most_ns > LOOK_VIRTUAL_NS)
		at_most_ns = LOOK_VIRTUAL_NS;
	onbeat_status status = onbeat_select(lf_member_context(), ends, peer->in_count, at_most_ns,
					     &index);
	if (status == ONBEAT_STOPPED) {
		peer->is_over = true;
		lf_run_is_over();
	}
}

/* Waits until there may be something, or something that is held is due. */
static void wait_for_any(struct peer *peer, int socket)
{
	struct pollfd fds[INS + 1];
	int64_t until = INT64_MAX, left = LOOK_NS;
	if (peer->held_count > 0)
		until = peer->held[peer->first_held].due_ns;
	else if (peer->has_ended)
		until = peer->ended_due_ns;
	if (until != INT64_MAX && until - now() < left)
		left = until - now();
	if (left <= 0)
		return;
	bool is_full = peer->held_count == HELD;
	fds[0] = (struct pollfd){ .fd = peer->has_ended || is_full ? -1 : socket,
				  .events = POLLIN };
	size_t count = 1;
	for (size_t i = 0; i < peer->in_count && !peer->is_over; i++) {
		fds[count] = (struct pollfd){ .events = POLLIN };
		if (onbeat_listener_descriptor(peer->ins[i].end, &fds[count].fd) != ONBEAT_OK) {
			wait_virtual(peer, left);
			return;
		}
		count++;
	}
	/* Up to a millisecond later than due. */
	poll(fds, count, (int)((left + 999999) / 1000000));
}

/* Continues with the next message; false when the socket is closed. */
static bool next_message(struct peer *peer, void *net)
{
	for (;;) {
		if (take_from_channels(peer) || take_held(peer))
			return true;
		int socket = lf_socket_of(net);
		if (peer->has_ended) {
			if (peer->held_count == 0 &&
			    (peer->is_over || now() >= peer->ended_due_ns))
				return false;
		} else if (socket < 0) {
			end_socket(peer);
			continue;
		} else if (peer->held_count < HELD && has_octets(socket)) {
			if (take_from_socket(peer, net))
				return true;
			continue;
		}
		wait_for_any(peer, socket);
	}
}

static int read_piece(struct peer *peer, void *net, size_t octets, unsigned char *buffer)
{
	/* The type was read to know what it is. */
	if (peer->source == OURS || peer->piece == 0) {
		memcpy(buffer, peer->message + peer->at, octets);
		peer->at += octets;
		return 0;
	}
	if (lf_read_socket(net, octets, buffer) != 0)
		return -1;
	/* Port and federate come before the length of the payload. */
	if (peer->piece == 1)
		peer->pieces[2] = lf_decode32(buffer + 4);
	return 0;
}

int lf_peer_read(struct peer *peer, void *net, size_t octets, unsigned char *buffer)
{
	if (peer->source == NOBODY && !next_message(peer, net))
		return -1;
	if (octets != peer->pieces[peer->piece])
		lf_fatal("unknown reactor-c: it reads %zu octets where %zu are expected; "
			 "docs/lingua-franca.md says which versions are known",
			 octets, peer->pieces[peer->piece]);
	if (read_piece(peer, net, octets, buffer) != 0) {
		/* Within a message: nothing of it can be used. */
		peer->source = NOBODY;
		end_socket(peer);
		return -1;
	}
	if (++peer->piece == peer->piece_count)
		peer->source = NOBODY;
	return 0;
}
