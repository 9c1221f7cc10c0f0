/*
 * reactors.c: what the reactors of Onbeat.lf do: ends of channels, and for each receiving end a
 * thread that schedules an action at the tag capture + D.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "onbeat_lf.h"

#include "internal.h"
#include "reactor_c.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct onbeat_lf_talker {
	char name[LF_NAME];
	onbeat_talker *end;
	size_t octets;
	uint64_t sent;
	uint64_t failed;
};

struct onbeat_lf_listener {
	struct onbeat_lf_listener *next;
	char name[LF_NAME];
	onbeat_listener *end;
	size_t octets;
	int64_t delay_ns;
	/* NULL until a reactor takes the end. */
	lf_action_base_t *action;
	bool has_thread;
	/* Of what follows, which the thread and the shutdown share. */
	pthread_mutex_t lock;
	bool is_closed;
	bool has_scheduled;
	tag_t last;
	uint64_t received;
	uint64_t late;
	int64_t latest_ns;
};

/* All receiving ends, in the order in which they were opened. Only set-up changes the list. */
static struct onbeat_lf_listener *listeners;
static pthread_mutex_t set_up = PTHREAD_MUTEX_INITIALIZER;

static void set_name(char to[LF_NAME], const char *name)
{
	if (!name || strlen(name) == 0 || strlen(name) >= LF_NAME)
		lf_fatal("the parameter `channel` is no name of a channel: `%s`",
			 name ? name : "");
	memcpy(to, name, strlen(name) + 1);
}

static void *allocated(size_t octets)
{
	void *memory = calloc(1, octets);
	if (!memory)
		lf_fatal("there is no memory for a channel");
	return memory;
}

/* --- the sending end -------------------------------------------------------------------------- */

static void open_talker(void *argument)
{
	struct onbeat_lf_talker *talker = argument;
	talker->end = lf_open_talker(talker->name, talker->octets);
}

struct onbeat_lf_talker *onbeat_lf_talk(const char *channel, size_t octets)
{
	struct onbeat_lf_talker *talker = allocated(sizeof(*talker));
	set_name(talker->name, channel);
	talker->octets = octets;
	lf_member_do(open_talker, talker);
	return talker;
}

void onbeat_lf_transmit(struct onbeat_lf_talker *talker, const void *payload, size_t octets)
{
	/* The channel has one size: any other is refused, not cut or filled up. */
	if (octets != talker->octets)
		lf_fatal("%s: a payload of %zu octets on a channel for %zu", talker->name, octets,
			 talker->octets);
	onbeat_status status = onbeat_write(talker->end, payload, NULL);
	if (status == ONBEAT_OK) {
		talker->sent++;
		return;
	}
	if (status == ONBEAT_STOPPED) {
		lf_request_stop();
		return;
	}
	if (talker->failed++ == 0)
		fprintf(stderr, "onbeat_lf: %s: not sent: %s\n", talker->name,
			status < 0 ? onbeat_last_error() : onbeat_strerror(status));
}

void onbeat_lf_talker_end(struct onbeat_lf_talker *talker)
{
	if (!talker)
		return;
	fprintf(stderr, "onbeat_lf: %s: sent %" PRIu64 ", failed %" PRIu64 "\n", talker->name,
		talker->sent, talker->failed);
}

/* --- the receiving end ------------------------------------------------------------------------ */

/* What the runtime's clock reads when the network's reads 0: the closest of some readings. */
static bool clock_offset(int64_t *offset)
{
	int64_t closest = INT64_MAX;
	for (int i = 0; i < 4 && closest > 0; i++) {
		int64_t before, after;
		if (onbeat_now(lf_member_context(), &before) != ONBEAT_OK)
			return false;
		int64_t here = lf_time_physical();
		if (onbeat_now(lf_member_context(), &after) != ONBEAT_OK)
			return false;
		if (after - before < closest) {
			closest = after - before;
			*offset = here - before - closest / 2;
		}
	}
	return true;
}

/*
 * The tag of a message that is wanted at `time`: that one, unless the program has passed it, or a
 * message that was sent before has a later one. Messages keep their order. With the lock of the
 * environment held.
 */
static tag_t tag_for(const struct onbeat_lf_listener *listener, const environment_t *env,
		     instant_t time)
{
	tag_t tag = { .time = time, .microstep = 0 };
	if (lf_tag_compare(tag, env->current_tag) <= 0) {
		tag = env->current_tag;
		tag.microstep++;
	}
	if (listener->has_scheduled && lf_tag_compare(tag, listener->last) <= 0) {
		tag = listener->last;
		tag.microstep++;
	}
	return tag;
}

static void count(struct onbeat_lf_listener *listener, int64_t late_ns)
{
	listener->received++;
	if (late_ns > 0)
		listener->late++;
	if (late_ns > listener->latest_ns)
		listener->latest_ns = late_ns;
}

/* Hands a message to the runtime, which frees it. */
static void schedule(struct onbeat_lf_listener *listener, struct onbeat_lf_arrival *arrival,
		     const onbeat_message *info, int64_t offset)
{
	environment_t *env = listener->action->parent->environment;
	instant_t wanted = info->capture_ns + listener->delay_ns + offset;
	pthread_mutex_lock(&listener->lock);
	if (listener->is_closed) {
		pthread_mutex_unlock(&listener->lock);
		free(arrival);
		return;
	}
	lf_mutex_lock(&env->mutex);
	tag_t tag = tag_for(listener, env, wanted);
	/* By the clock, or because the program was ahead of it. */
	arrival->late_ns = info->latency_ns - listener->delay_ns;
	if (tag.time - wanted > arrival->late_ns)
		arrival->late_ns = tag.time - wanted;
	if (arrival->late_ns < 0)
		arrival->late_ns = 0;
	count(listener, arrival->late_ns);
	lf_token_t *token = _lf_new_token((token_type_t *)listener->action, arrival, 1);
	/* Refuses, and frees, what is after the program's end. */
	_lf_schedule_at_tag(env, listener->action->trigger, tag, token);
	listener->last = tag;
	listener->has_scheduled = true;
	lf_notify_of_event(env);
	lf_mutex_unlock(&env->mutex);
	pthread_mutex_unlock(&listener->lock);
}

static void *receive(void *argument)
{
	struct onbeat_lf_listener *listener = argument;
	for (;;) {
		struct onbeat_lf_arrival *arrival =
			allocated(sizeof(*arrival) + listener->octets);
		arrival->octets = listener->octets;
		onbeat_message info;
		int64_t offset = 0;
		onbeat_status status = onbeat_read(listener->end, arrival->payload, &info);
		if (status == ONBEAT_OK && clock_offset(&offset)) {
			schedule(listener, arrival, &info, offset);
			continue;
		}
		free(arrival);
		if (status < 0)
			lf_fatal("%s: not received: %s", listener->name, onbeat_last_error());
		break;
	}
	/* The run is over, and so is the program. */
	pthread_mutex_lock(&listener->lock);
	bool is_closed = listener->is_closed;
	pthread_mutex_unlock(&listener->lock);
	if (!is_closed)
		lf_request_stop();
	return NULL;
}

static void open_listener(void *argument)
{
	struct onbeat_lf_listener *listener = argument;
	listener->end = lf_open_listener(listener->name, listener->octets);
}

static struct onbeat_lf_listener *opened(const char *channel, size_t octets)
{
	struct onbeat_lf_listener *listener = allocated(sizeof(*listener));
	set_name(listener->name, channel);
	listener->octets = octets;
	pthread_mutex_init(&listener->lock, NULL);
	lf_member_do(open_listener, listener);
	struct onbeat_lf_listener **last = &listeners;
	while (*last)
		last = &(*last)->next;
	*last = listener;
	return listener;
}

char *onbeat_lf_early(const char *channel, size_t octets)
{
	pthread_mutex_lock(&set_up);
	struct onbeat_lf_listener *listener = opened(channel, octets);
	pthread_mutex_unlock(&set_up);
	return listener->name;
}

struct onbeat_lf_listener *onbeat_lf_listen(const char *channel, size_t octets, int64_t delay_ns,
					    void *action)
{
	if (delay_ns <= 0)
		lf_fatal("%s: the parameter `delay` is the channel's fixed delay, above 0",
			 channel ? channel : "");
	pthread_mutex_lock(&set_up);
	struct onbeat_lf_listener *listener = listeners;
	while (listener && (listener->action || channel != listener->name))
		listener = listener->next;
	if (!listener)
		listener = opened(channel, octets);
	if (listener->octets != octets)
		lf_fatal("%s: opened for %zu octets, but the type has %zu", listener->name,
			 listener->octets, octets);
	listener->delay_ns = delay_ns;
	listener->action = action;
	pthread_mutex_unlock(&set_up);
	return listener;
}

static void begin(void *unused)
{
	(void)unused;
	if (!lf_member_start()) {
		lf_request_stop();
		return;
	}
	for (struct onbeat_lf_listener *at = listeners; at; at = at->next) {
		if (!at->action)
			lf_fatal("%s: opened early, but no Receive has the name", at->name);
		if (!at->has_thread)
			lf_member_thread(receive, at);
		at->has_thread = true;
	}
}

void onbeat_lf_begin(void)
{
	pthread_mutex_lock(&set_up);
	lf_member_do(begin, NULL);
	pthread_mutex_unlock(&set_up);
	lf_member_check();
}

int64_t onbeat_lf_take(const struct onbeat_lf_arrival *arrival, void *payload, size_t octets)
{
	if (octets != arrival->octets)
		lf_fatal("a payload of %zu octets where %zu came", octets, arrival->octets);
	memcpy(payload, arrival->payload, octets);
	return arrival->late_ns;
}

void onbeat_lf_listener_end(struct onbeat_lf_listener *listener)
{
	if (!listener)
		return;
	pthread_mutex_lock(&listener->lock);
	listener->is_closed = true;
	onbeat_counters counters = { 0 };
	onbeat_listener_counters_sized(listener->end, sizeof(counters), &counters);
	fprintf(stderr,
		"onbeat_lf: %s: received %" PRIu64 ", late %" PRIu64 ", latest %" PRId64
		" ns, lost %" PRIu64 "\n",
		listener->name, listener->received, listener->late, listener->latest_ns,
		counters.lost);
	pthread_mutex_unlock(&listener->lock);
}
