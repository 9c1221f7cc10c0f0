/*
 * onbeat_uc.h: network channels for micro-LF (reactor-uc), as a custom interface of federates:
 *
 *   @interface_custom(name="OnbeatChannel", include="onbeat_uc.h", args="there, back, 256")
 *
 * The arguments are the channel that this federate sends on, the one that it receives on, and the
 * octets of a message of either. The other federate has the channels the other way round. One with
 * more than one peer has an interface for each: OnbeatChannel, OnbeatChannel2 to 4.
 *
 * Link with lf/src/uc.c and lf/src/member.c, and with Onbeat.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <stddef.h>

#include "reactor-uc/network_channel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Octets of the serialised message that micro-LF sends at most: a payload of 832, and its frame. */
#define ONBEAT_UC_MAX 896
/* Octets that a channel's message has besides. */
#define ONBEAT_UC_HEADER 3

struct onbeat_uc;

/* What lfc puts into a federate. */
typedef struct OnbeatChannel {
	NetworkChannel super;
	struct onbeat_uc *channel;
} OnbeatChannel;
typedef OnbeatChannel OnbeatChannel2;
typedef OnbeatChannel OnbeatChannel3;
typedef OnbeatChannel OnbeatChannel4;

/* Makes a channel; `arguments` is what the attribute has, with commas between and before. */
void onbeat_uc_channel(OnbeatChannel *self, const char *arguments);

/*
 * lfc calls NAME_ctor(&self->channel, , there, back, 256): with an empty argument, which a function
 * cannot have. A macro can; and it needs no quotes around the names.
 */
#define OnbeatChannel_ctor(self, ...) onbeat_uc_channel((self), #__VA_ARGS__)
#define OnbeatChannel2_ctor(self, ...) onbeat_uc_channel((self), #__VA_ARGS__)
#define OnbeatChannel3_ctor(self, ...) onbeat_uc_channel((self), #__VA_ARGS__)
#define OnbeatChannel4_ctor(self, ...) onbeat_uc_channel((self), #__VA_ARGS__)

#ifdef __cplusplus
}
#endif
