/*
 * onbeat_lf.h: what the reactors of Onbeat.lf call. Their bodies hold nothing but these calls, so
 * that one file of C knows the internals of the reactor runtime (reactor-c).
 *
 * All of it ends the program with a message when it cannot do what the model says: a channel that
 * the description does not have, a payload of another size, an unknown reactor-c.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The types of payloads. lfc does not show the preamble of a model to the reactors that it imports,
 * so a model with types of its own has them in this file, and names it in its target block:
 * `files: ["onbeat_types.h"]`. Both ends of a channel may share it.
 */
#if __has_include("onbeat_types.h")
#include "onbeat_types.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The sending end of a channel. */
struct onbeat_lf_talker;

/* A receiving end, and the thread that schedules an action for each of its messages. */
struct onbeat_lf_listener;

/* What the action of a receiving end carries; the runtime frees it. */
struct onbeat_lf_arrival {
	/* By how much the message came later than capture + D, or its tag is later; 0: it is not. */
	int64_t late_ns;
	/* Octets of the payload. */
	size_t octets;
	unsigned char payload[];
};
typedef struct onbeat_lf_arrival onbeat_lf_arrival_t;

/*
 * Opens the receiving end of `channel` for payloads of `octets` before the program's start time,
 * and returns the name. It is for parameters, which the runtime initialises before it starts:
 *
 *   r = new Receive<reading_t>(channel = {= onbeat_lf_early("reading", sizeof(reading_t)) =})
 *
 * Messages that come before a `Receive` with a plain name has executed its startup are lost.
 */
char *onbeat_lf_early(const char *channel, size_t octets);

/* Opens the sending end of a channel for payloads of `octets`. For startup reactions. */
struct onbeat_lf_talker *onbeat_lf_talk(const char *channel, size_t octets);

/*
 * Opens the receiving end of a channel for payloads of `octets`, or takes the one that
 * onbeat_lf_early() opened. Each message makes `action` present at the tag capture + `delay_ns`.
 */
struct onbeat_lf_listener *onbeat_lf_listen(const char *channel, size_t octets, int64_t delay_ns,
					    void *action);

/*
 * Ends set-up: in a run, waits until each of its programs has come this far. For startup reactions
 * after those that open ends; a second time, for ends that a mode has opened since.
 */
void onbeat_lf_begin(void);

/* Sends a payload. Blocks only while the channel's declared rate is exceeded. */
void onbeat_lf_transmit(struct onbeat_lf_talker *talker, const void *payload, size_t octets);

/* Copies a payload out of what an action carries; returns `late_ns`. */
int64_t onbeat_lf_take(const struct onbeat_lf_arrival *arrival, void *payload, size_t octets);

/* Prints what an end has counted. No message is scheduled after the second. For shutdown. */
void onbeat_lf_talker_end(struct onbeat_lf_talker *talker);
void onbeat_lf_listener_end(struct onbeat_lf_listener *listener);

#ifdef __cplusplus
}
#endif
