/*
 * federated.c: network channels under the ordinary connections of a decentralised federation. The
 * program is linked with
 *
 *   -Wl,--wrap=lf_connect_to_rti -Wl,--wrap=lf_send_tagged_message
 *   -Wl,--wrap=read_from_net_close_on_error
 *
 * A tagged message on a connection that the table has goes over its channel, with the header that
 * it has on a socket, and enters the runtime where it would have come out of the socket: in the
 * thread that listens to its sender. So tags, tardiness and maxwait are the runtime's own. All else
 * stays on sockets.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"
#include "peer.h"
#include "reactor_c.h"

#if !__has_include("net_abstraction.h")
#error "onbeat_lf: unknown reactor-c; docs/lingua-franca.md says which are known"
#endif
#include "federate.h"
#include "net_abstraction.h"
#include "net_common.h"
#include "net_util.h"
#include "socket_common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(COMM_TYPE_SST) || defined(COMM_TYPE_TLS)
#error "onbeat_lf: channels stand beside TCP sockets: set `comm-type: TCP` in the target block"
#endif
_Static_assert(MSG_TYPE_P2P_MESSAGE == LF_TYPE_PHYSICAL, LF_UNKNOWN);
_Static_assert(MSG_TYPE_P2P_TAGGED_MESSAGE == LF_TYPE_TAGGED, LF_UNKNOWN);
_Static_assert(MSG_TYPE_PORT_ABSENT == LF_TYPE_ABSENT, LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(&lf_send_tagged_message,
			   int (*)(environment_t *, interval_t, int, unsigned short,
				   unsigned short, const char *, size_t, unsigned char *)),
	       LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(&read_from_net_close_on_error,
			   int (*)(net_abstraction_t, size_t, unsigned char *)),
	       LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(&lf_connect_to_rti, void (*)(const char *, int)), LF_UNKNOWN);

/* Defined in federate.c of the runtime, and in what lfc generates. */
extern federate_instance_t _fed;
extern size_t _lf_action_table_size;

void __real_lf_connect_to_rti(const char *host, int port);
int __real_lf_send_tagged_message(environment_t *env, interval_t additional_delay, int type,
				  unsigned short port, unsigned short federate, const char *name,
				  size_t length, unsigned char *message);
int __real_read_from_net_close_on_error(net_abstraction_t net, size_t octets,
					unsigned char *buffer);
void __wrap_lf_connect_to_rti(const char *host, int port);
int __wrap_lf_send_tagged_message(environment_t *env, interval_t additional_delay, int type,
				  unsigned short port, unsigned short federate, const char *name,
				  size_t length, unsigned char *message);
int __wrap_read_from_net_close_on_error(net_abstraction_t net, size_t octets,
					unsigned char *buffer);

/* A sending end. */
struct out {
	const struct lf_row *row;
	onbeat_talker *end;
	/* Workers may send at once. */
	pthread_mutex_t lock;
	unsigned char message[LF_MESSAGE_MAX];
	uint64_t sent;
	uint64_t refused;
};

static struct lf_table table;
static struct out *outs;
static size_t out_count;
static struct peer *peers[NUMBER_OF_FEDERATES];

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool begun;
	bool ready;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* --- set-up ----------------------------------------------------------------------------------- */

/* The runtime must read a header as we write it: else it is of another version. */
static void check_header(void)
{
	const struct lf_header written = { LF_TYPE_TAGGED,	 0x0102, 0x0304, 0x05060708,
					   0x090a0b0c0d0e0f10, 0x11121314 };
	unsigned char octets[LF_HEADER];
	uint16_t port = 0, federate = 0;
	size_t length = 0;
	tag_t tag = { 0, 0 };
	lf_encode(&written, octets);
	extract_timed_header(octets + 1, &port, &federate, &length, &tag);
	if (port != written.port || federate != written.federate || length != written.length ||
	    tag.time != written.time || tag.microstep != written.microstep)
		lf_fatal("unknown reactor-c: its header of tagged messages is another one; "
			 "docs/lingua-franca.md says which versions are known");
}

static void read_table(void)
{
	static char text[LF_TABLE_OCTETS + 1];
	char why[160];
	const char *path = secure_getenv("ONBEAT_LF_TABLE");
	if (!path)
		lf_fatal("ONBEAT_LF_TABLE does not name the table of channels that "
			 "lf/README.md describes");
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t length = 0;
	ssize_t got = file < 0 ? -1 : 1;
	while (got > 0 && length < sizeof(text)) {
		got = read(file, text + length, sizeof(text) - length);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			length += (size_t)got;
	}
	if (got < 0)
		lf_fatal("%s: %s", path, strerror(errno));
	close(file);
	if (!lf_table_parse(text, length, &table, why, sizeof(why)))
		lf_fatal("%s: %s", path, why);
}

static void open_out(const struct lf_row *row)
{
	struct out *out = &outs[out_count++];
	out->row = row;
	pthread_mutex_init(&out->lock, NULL);
	out->end = lf_open_talker(row->channel, LF_HEADER + row->octets);
}

static void open_in(const struct lf_row *row)
{
	struct peer **peer = &peers[row->from];
	if (row->to_port >= _lf_action_table_size)
		lf_fatal("the channel %s is of input %u of federate %u, which has %zu",
			 row->channel, row->to_port, row->to, _lf_action_table_size);
	if (!*peer)
		*peer = lf_peer_new(row->from);
	lf_peer_add(*peer, row, lf_open_listener(row->channel, LF_HEADER + row->octets));
}

/* Prints what the ends have counted. */
static void print_counts(void)
{
	int me = lf_fed_id();
	for (size_t i = 0; i < out_count; i++)
		fprintf(stderr,
			"onbeat_lf: federate %d: %s: sent %" PRIu64 ", refused %" PRIu64 "\n", me,
			outs[i].row->channel, outs[i].sent, outs[i].refused);
	for (size_t i = 0; i < NUMBER_OF_FEDERATES; i++)
		if (peers[i])
			lf_peer_print(peers[i], me);
}

static void open_all(void *unused)
{
	(void)unused;
	int me = lf_fed_id();
	outs = calloc(table.count + 1, sizeof(*outs));
	if (!outs)
		lf_fatal("there is no memory for the channels");
	for (size_t i = 0; i < table.count; i++) {
		const struct lf_row *row = &table.rows[i];
		if (row->from >= NUMBER_OF_FEDERATES || row->to >= NUMBER_OF_FEDERATES)
			lf_fatal("the channel %s is of federate %u to %u, but there are %d",
				 row->channel, row->from, row->to, NUMBER_OF_FEDERATES);
		if (row->from == me)
			open_out(row);
		else if (row->to == me)
			open_in(row);
	}
	atexit(print_counts);
	lf_member_start();
	pthread_mutex_lock(&state.lock);
	state.ready = true;
	pthread_cond_broadcast(&state.changed);
	pthread_mutex_unlock(&state.lock);
}

/*
 * The first thing that a federate does with the others, before there is a start time. It does not
 * wait for the channels: another federate may not be open before this one answers its sockets.
 */
void __wrap_lf_connect_to_rti(const char *host, int port)
{
	pthread_mutex_lock(&state.lock);
	bool is_first = !state.begun;
	state.begun = true;
	pthread_mutex_unlock(&state.lock);
	if (is_first) {
		check_header();
		read_table();
		lf_member_begin_with(open_all, NULL);
	}
	__real_lf_connect_to_rti(host, port);
}

static void wait_until_ready(void)
{
	static bool is_checked;
	if (__atomic_load_n(&is_checked, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&state.lock);
	while (!state.ready)
		pthread_cond_wait(&state.changed, &state.lock);
	pthread_mutex_unlock(&state.lock);
	lf_member_check();
	__atomic_store_n(&is_checked, true, __ATOMIC_RELEASE);
}

/* --- sending ---------------------------------------------------------------------------------- */

static struct out *out_for(unsigned short port, unsigned short federate)
{
	for (size_t i = 0; i < out_count; i++)
		if (outs[i].row->to_port == port && outs[i].row->to == federate)
			return &outs[i];
	return NULL;
}

/* A message that does not fit is lost, not sent by the socket: there it could be overtaken. */
static int refuse(struct out *out, const char *why)
{
	if (out->refused++ == 0)
		fprintf(stderr, "onbeat_lf: %s: a message is refused: %s\n", out->row->channel,
			why);
	return -1;
}

static int send_over(struct out *out, tag_t tag, unsigned short port, unsigned short federate,
		     size_t length, const unsigned char *message)
{
	const struct lf_header header = { LF_TYPE_TAGGED, port,	    federate,
					  (uint32_t)length, tag.time, tag.microstep };
	if (length > out->row->octets)
		return refuse(out, "its payload is longer than the channel's");
	lf_encode(&header, out->message);
	if (length > 0)
		memcpy(out->message + LF_HEADER, message, length);
	memset(out->message + LF_HEADER + length, 0, out->row->octets - length);
	onbeat_status status = onbeat_write(out->end, out->message, NULL);
	if (status == ONBEAT_OK) {
		out->sent++;
		return 0;
	}
	if (status == ONBEAT_STOPPED) {
		lf_request_stop();
		return -1;
	}
	return refuse(out, status < 0 ? onbeat_last_error() : onbeat_strerror(status));
}

int __wrap_lf_send_tagged_message(environment_t *env, interval_t additional_delay, int type,
				  unsigned short port, unsigned short federate, const char *name,
				  size_t length, unsigned char *message)
{
	struct out *out = NULL;
	if (type == LF_TYPE_TAGGED) {
		wait_until_ready();
		out = out_for(port, federate);
	}
	if (!out)
		return __real_lf_send_tagged_message(env, additional_delay, type, port, federate,
						     name, length, message);
	/* As the runtime does: what is after the end is not sent. */
	tag_t tag = lf_delay_tag(env->current_tag, additional_delay);
	if (lf_is_tag_after_stop_tag(env, tag))
		return -1;
	pthread_mutex_lock(&out->lock);
	int result = send_over(out, tag, port, federate, length, message);
	pthread_mutex_unlock(&out->lock);
	return result;
}

/* --- receiving -------------------------------------------------------------------------------- */

int lf_socket_of(void *net)
{
	return ((const socket_priv_t *)net)->socket_descriptor;
}

int lf_read_socket(void *net, size_t octets, unsigned char *buffer)
{
	return __real_read_from_net_close_on_error(net, octets, buffer);
}

void lf_run_is_over(void)
{
	lf_request_stop();
}

int __wrap_read_from_net_close_on_error(net_abstraction_t net, size_t octets,
					unsigned char *buffer)
{
	for (size_t i = 0; i < NUMBER_OF_FEDERATES; i++)
		if (net && _fed.net_for_inbound_p2p_connections[i] == net) {
			wait_until_ready();
			if (peers[i])
				return lf_peer_read(peers[i], net, octets, buffer);
		}
	return __real_read_from_net_close_on_error(net, octets, buffer);
}
