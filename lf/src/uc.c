/*
 * uc.c: the network channel of micro-LF over two of Onbeat's, one in each direction.
 *
 * A message has a kind, the length of what follows, and that. Before a federate may send, the other
 * one must be there: both say hello until they have heard that they are heard.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "onbeat_uc.h"

#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LF_UNKNOWN "onbeat_lf: unknown reactor-uc; docs/lingua-franca.md says which are known"
#define LF_HAS_TYPE(expression, ...) _Generic((expression), __VA_ARGS__: 1, default: 0)
_Static_assert(LF_HAS_TYPE(((NetworkChannel *)0)->was_ever_connected, bool (*)(NetworkChannel *)),
	       LF_UNKNOWN);
_Static_assert(LF_HAS_TYPE(((NetworkChannel *)0)->send_blocking,
			   lf_ret_t (*)(NetworkChannel *, const char *, size_t)),
	       LF_UNKNOWN);

/* Between two hellos. */
#define HELLO_NS 10000000

enum kind { HELLO = 1, HELLO_HEARD = 2, DATA = 3 };

struct onbeat_uc {
	char out_name[LF_NAME];
	char in_name[LF_NAME];
	size_t octets;
	onbeat_talker *out;
	onbeat_listener *in;
	/* Of the sending end and what follows. */
	pthread_mutex_t lock;
	unsigned char message[LF_MESSAGE_MAX];
	bool is_open;
	bool is_connected;
	bool was_connected;
	bool is_heard;
	EncryptionLayer *layer;
	void (*receive)(EncryptionLayer *layer, const char *buffer, ssize_t size);
};

/* Taken by one thread at a time: the end of the run ends all that waits. */
static struct onbeat_uc *channel_of(NetworkChannel *self)
{
	return ((OnbeatChannel *)self)->channel;
}

/* Sends; with the lock held. A hello does not wait until the declared rate allows it. */
static onbeat_status write_message(struct onbeat_uc *channel, enum kind kind, const char *payload,
				   size_t length)
{
	channel->message[0] = (unsigned char)kind;
	channel->message[1] = (unsigned char)length;
	channel->message[2] = (unsigned char)(length >> 8);
	if (length > 0)
		memcpy(channel->message + ONBEAT_UC_HEADER, payload, length);
	memset(channel->message + ONBEAT_UC_HEADER + length, 0,
	       channel->octets - ONBEAT_UC_HEADER - length);
	if (kind == DATA)
		return onbeat_write(channel->out, channel->message, NULL);
	return onbeat_try_write(channel->out, channel->message, NULL);
}

/* --- receiving -------------------------------------------------------------------------------- */

static void take(struct onbeat_uc *channel, const unsigned char *message)
{
	size_t length = message[1] | (size_t)message[2] << 8;
	if (message[0] < HELLO || message[0] > DATA ||
	    length > channel->octets - ONBEAT_UC_HEADER) {
		fprintf(stderr, "onbeat_lf: %s: a message of something else is ignored\n",
			channel->in_name);
		return;
	}
	pthread_mutex_lock(&channel->lock);
	bool is_open = channel->is_open;
	channel->is_connected = channel->was_connected = is_open;
	channel->is_heard = channel->is_heard || message[0] != HELLO;
	/* The other one continues until it has heard this. */
	if (is_open && message[0] == HELLO)
		write_message(channel, HELLO_HEARD, NULL, 0);
	void (*receive)(EncryptionLayer *, const char *, ssize_t) = channel->receive;
	EncryptionLayer *layer = channel->layer;
	pthread_mutex_unlock(&channel->lock);
	if (is_open && receive && message[0] == DATA)
		receive(layer, (const char *)message + ONBEAT_UC_HEADER, (ssize_t)length);
}

static void *pump(void *argument)
{
	struct onbeat_uc *channel = argument;
	unsigned char message[LF_MESSAGE_MAX];
	for (;;) {
		pthread_mutex_lock(&channel->lock);
		int64_t patience = channel->is_heard ? -1 : HELLO_NS;
		pthread_mutex_unlock(&channel->lock);
		onbeat_status status = patience < 0 ? onbeat_read(channel->in, message, NULL) :
						      onbeat_read_timeout(channel->in, message,
									  patience, NULL);
		if (status == ONBEAT_OK) {
			take(channel, message);
		} else if (status == ONBEAT_TIMED_OUT) {
			/* Who has it is sending: that is heard as well. */
			if (pthread_mutex_trylock(&channel->lock) != 0)
				continue;
			if (channel->is_open && !channel->is_heard)
				write_message(channel,
					      channel->was_connected ? HELLO_HEARD : HELLO, NULL,
					      0);
			pthread_mutex_unlock(&channel->lock);
		} else {
			break;
		}
	}
	pthread_mutex_lock(&channel->lock);
	channel->is_connected = false;
	pthread_mutex_unlock(&channel->lock);
	return NULL;
}

/* --- the seven functions ---------------------------------------------------------------------- */

static bool is_connected(NetworkChannel *self)
{
	struct onbeat_uc *channel = channel_of(self);
	pthread_mutex_lock(&channel->lock);
	bool is = channel->is_connected;
	pthread_mutex_unlock(&channel->lock);
	return is;
}

static bool was_ever_connected(NetworkChannel *self)
{
	struct onbeat_uc *channel = channel_of(self);
	pthread_mutex_lock(&channel->lock);
	bool was = channel->was_connected;
	pthread_mutex_unlock(&channel->lock);
	return was;
}

static void open_ends(void *argument)
{
	struct onbeat_uc *channel = argument;
	channel->out = lf_open_talker(channel->out_name, channel->octets);
	channel->in = lf_open_listener(channel->in_name, channel->octets);
	if (!lf_member_start())
		return;
	pthread_mutex_lock(&channel->lock);
	channel->is_open = true;
	pthread_mutex_unlock(&channel->lock);
	lf_member_thread(pump, channel);
}

static lf_ret_t open_connection(NetworkChannel *self)
{
	lf_member_begin_with(open_ends, channel_of(self));
	return LF_OK;
}

static void close_connection(NetworkChannel *self)
{
	struct onbeat_uc *channel = channel_of(self);
	pthread_mutex_lock(&channel->lock);
	channel->is_open = channel->is_connected = false;
	pthread_mutex_unlock(&channel->lock);
}

static lf_ret_t send_blocking(NetworkChannel *self, const char *message, size_t message_size)
{
	struct onbeat_uc *channel = channel_of(self);
	if (message_size > channel->octets - ONBEAT_UC_HEADER || message_size > ONBEAT_UC_MAX) {
		fprintf(stderr, "onbeat_lf: %s: a message of %zu octets is refused\n",
			channel->out_name, message_size);
		return LF_ERR;
	}
	pthread_mutex_lock(&channel->lock);
	onbeat_status status = ONBEAT_E_NOT_STARTED;
	if (channel->is_open)
		status = write_message(channel, DATA, message, message_size);
	pthread_mutex_unlock(&channel->lock);
	if (status == ONBEAT_E_THREAD)
		lf_member_check();
	return status == ONBEAT_OK ? LF_OK : LF_ERR;
}

static void register_receive_callback(NetworkChannel *self, EncryptionLayer *layer,
				      void (*receive_callback)(EncryptionLayer *layer,
							       const char *buffer, ssize_t size))
{
	struct onbeat_uc *channel = channel_of(self);
	pthread_mutex_lock(&channel->lock);
	channel->layer = layer;
	channel->receive = receive_callback;
	pthread_mutex_unlock(&channel->lock);
}

/* Its thread may still wait for a message: what it uses stays until the program ends. */
static void free_channel(NetworkChannel *self)
{
	close_connection(self);
}

/* --- the constructor -------------------------------------------------------------------------- */

/* Takes a word off a list with commas; empty ones at its beginning are left out. */
static void next_word(const char **list, char *word, size_t size)
{
	*list += strspn(*list, " \t,\"");
	size_t length = strcspn(*list, " \t,\"");
	if (length == 0 || length >= size)
		lf_fatal("@interface_custom: args are two channels and a number of octets");
	memcpy(word, *list, length);
	word[length] = '\0';
	*list += length;
}

void onbeat_uc_channel(OnbeatChannel *self, const char *arguments)
{
	struct onbeat_uc *channel = calloc(1, sizeof(*channel));
	char octets[8], *end;
	if (!channel)
		lf_fatal("there is no memory for a channel");
	next_word(&arguments, channel->out_name, sizeof(channel->out_name));
	next_word(&arguments, channel->in_name, sizeof(channel->in_name));
	next_word(&arguments, octets, sizeof(octets));
	channel->octets = strtoul(octets, &end, 10);
	if (*end || arguments[strspn(arguments, " \t,\"")])
		lf_fatal("@interface_custom: args are two channels and a number of octets");
	if (channel->octets <= ONBEAT_UC_HEADER || channel->octets > LF_MESSAGE_MAX)
		lf_fatal("@interface_custom: %s: messages have 4 to %d octets", octets,
			 LF_MESSAGE_MAX);
	pthread_mutex_init(&channel->lock, NULL);
	self->channel = channel;
	self->super.mode = NETWORK_CHANNEL_MODE_ASYNC;
	self->super.expected_connect_duration = HELLO_NS;
	self->super.is_connected = is_connected;
	self->super.was_ever_connected = was_ever_connected;
	self->super.open_connection = open_connection;
	self->super.close_connection = close_connection;
	self->super.send_blocking = send_blocking;
	self->super.register_receive_callback = register_receive_callback;
	self->super.free = free_channel;
}
