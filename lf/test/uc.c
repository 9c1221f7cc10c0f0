/*
 * uc.c: a federate of micro-LF, as far as its network channel goes. The first one sends ten
 * messages of growing length, waits for each answer, and prints what it gets; the second one
 * answers with the same octets in reverse. The first argument is 0 or 1.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../include/onbeat_uc.h"

#include "../src/internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 10

struct EncryptionLayer {
	char last[ONBEAT_UC_MAX];
	ssize_t length;
	uint32_t count;
};

static struct {
	OnbeatChannel channel;
	EncryptionLayer layer;
} self_0, self_1;

static void receive(EncryptionLayer *layer, const char *buffer, ssize_t size)
{
	assert(size >= 0 && (size_t)size <= sizeof(layer->last));
	memcpy(layer->last, buffer, (size_t)size);
	layer->length = size;
	layer->count++;
	onbeat_wake(lf_member_context(), &layer->count);
}

/* Waits until `count` messages have come, or the run is over. */
static bool wait_for(EncryptionLayer *layer, uint32_t count)
{
	while (layer->count < count)
		if (onbeat_wait(lf_member_context(), &layer->count, layer->count, INT64_MAX) ==
		    ONBEAT_STOPPED)
			return false;
	return true;
}

static void connect_to(NetworkChannel *channel)
{
	int64_t at = 0;
	assert(!channel->was_ever_connected(channel));
	assert(channel->send_blocking(channel, "", 0) == LF_ERR);
	assert(channel->open_connection(channel) == LF_OK);
	while (!channel->is_connected(channel))
		assert(onbeat_sleep_until(lf_member_context(), at += 1000000, NULL) == ONBEAT_OK);
	assert(channel->was_ever_connected(channel));
}

static void ask(void)
{
	NetworkChannel *channel = &self_0.channel.super;
	char message[ONBEAT_UC_MAX + 1];
	OnbeatChannel_ctor((&self_0.channel), , there, back, 131);
	channel->register_receive_callback(channel, &self_0.layer, receive);
	connect_to(channel);
	/* 128 octets fit; one more is refused. */
	assert(channel->send_blocking(channel, message, 129) == LF_ERR);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		size_t length = round == ROUNDS ? 128 : round - 1;
		memset(message, 'a', length);
		if (length > 0)
			message[0] = (char)('0' + round);
		assert(channel->send_blocking(channel, message, length) == LF_OK);
		assert(wait_for(&self_0.layer, round));
		printf("%zd %.*s\n", self_0.layer.length, (int)self_0.layer.length,
		       self_0.layer.last);
	}
	channel->close_connection(channel);
	assert(!channel->is_connected(channel) && channel->was_ever_connected(channel));
	channel->free(channel);
}

static void answer(void)
{
	NetworkChannel *channel = &self_1.channel.super;
	OnbeatChannel2_ctor((&self_1.channel), , back, there, 131);
	channel->register_receive_callback(channel, &self_1.layer, receive);
	connect_to(channel);
	for (uint32_t round = 1; wait_for(&self_1.layer, round); round++) {
		char reversed[ONBEAT_UC_MAX];
		for (ssize_t i = 0; i < self_1.layer.length; i++)
			reversed[i] = self_1.layer.last[self_1.layer.length - 1 - i];
		assert(channel->send_blocking(channel, reversed, (size_t)self_1.layer.length) ==
		       LF_OK);
		if (round == ROUNDS)
			return;
	}
}

int main(int argc, char **argv)
{
	assert(argc == 2);
	if (argv[1][0] == '0')
		ask();
	else
		answer();
	return 0;
}
