/*
 * network_channel.h: a stand-in for micro-LF's interface of network channels.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int64_t interval_t;
typedef enum { LF_OK = 0, LF_ERR = 1 } lf_ret_t;
typedef enum { NETWORK_CHANNEL_MODE_ASYNC, NETWORK_CHANNEL_MODE_POLLED } NetworkChannelMode;
typedef enum { NETWORK_CHANNEL_TYPE_TCP_IP } NetworkChannelType;

typedef struct NetworkChannel NetworkChannel;
typedef struct EncryptionLayer EncryptionLayer;

struct NetworkChannel {
	NetworkChannelMode mode;
	interval_t expected_connect_duration;
	NetworkChannelType type;
	bool (*is_connected)(NetworkChannel *self);
	bool (*was_ever_connected)(NetworkChannel *self);
	lf_ret_t (*open_connection)(NetworkChannel *self);
	void (*close_connection)(NetworkChannel *self);
	lf_ret_t (*send_blocking)(NetworkChannel *self, const char *message, size_t message_size);
	void (*register_receive_callback)(NetworkChannel *self, EncryptionLayer *layer,
					  void (*receive_callback)(EncryptionLayer *layer,
								   const char *buffer,
								   ssize_t size));
	void (*free)(NetworkChannel *self);
};
