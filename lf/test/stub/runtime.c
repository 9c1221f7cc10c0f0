/*
 * runtime.c: executes reactions in the order of tags, and at a tag in the order of levels, when the
 * clock has reached it.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "reactor_c.h"

#include "../../src/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct event {
	tag_t tag;
	trigger_t *trigger;
	lf_token_t *token;
	tag_t intended;
	struct event *next;
};

static environment_t environment = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static struct event *events;
static reaction_t *startup, *shutdown, *ready;
static trigger_t *triggers;
static instant_t start_time;
static interval_t maxwait;

/* --- time ------------------------------------------------------------------------------------- */

int lf_tag_compare(tag_t a, tag_t b)
{
	if (a.time != b.time)
		return a.time < b.time ? -1 : 1;
	return (a.microstep > b.microstep) - (a.microstep < b.microstep);
}

tag_t lf_delay_tag(tag_t tag, interval_t delay)
{
	if (delay == NEVER)
		return tag;
	if (delay == 0)
		return (tag_t){ tag.time, tag.microstep + 1 };
	return (tag_t){ tag.time + delay, 0 };
}

instant_t lf_time_start(void)
{
	return start_time;
}

#ifdef ONBEAT_LF_INLINE

/* Some day, so that nothing takes times since the start of the run for times since 1970. */
#define EPOCH 1700000000000000000
static uint32_t changes;

instant_t lf_time_physical(void)
{
	int64_t now;
	onbeat *context = lf_member_context();
	onbeat_status status = context ? onbeat_now(context, &now) : ONBEAT_E_NOT_STARTED;
	/* When the run is over nothing waits any more. */
	if (status == ONBEAT_STOPPED)
		return FOREVER;
	return EPOCH + (status == ONBEAT_OK ? now : 0);
}

int lf_notify_of_event(environment_t *env)
{
	(void)env;
	__atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST);
	onbeat_wake(lf_member_context(), &changes);
	return 0;
}

/* Waits until the clock reads `until`, or an event comes. With the lock held. */
static void wait_until(instant_t until)
{
	uint32_t seen = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
	int64_t local = until == FOREVER ? INT64_MAX : until - EPOCH;
	lf_mutex_unlock(&environment.mutex);
	if (onbeat_wait(lf_member_context(), &changes, seen, local) == ONBEAT_STOPPED)
		lf_request_stop();
	lf_mutex_lock(&environment.mutex);
}

#else

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

instant_t lf_time_physical(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int lf_notify_of_event(environment_t *env)
{
	(void)env;
	return pthread_cond_broadcast(&changed);
}

static void wait_until(instant_t until)
{
	if (until == FOREVER) {
		pthread_cond_wait(&changed, &environment.mutex);
		return;
	}
	struct timespec at = { until / 1000000000, until % 1000000000 };
	pthread_cond_timedwait(&changed, &environment.mutex, &at);
}

#endif

/* --- events ----------------------------------------------------------------------------------- */

int lf_mutex_lock(lf_mutex_t *mutex)
{
	return pthread_mutex_lock(mutex);
}

int lf_mutex_unlock(lf_mutex_t *mutex)
{
	return pthread_mutex_unlock(mutex);
}

int _lf_get_environments(environment_t **environments)
{
	*environments = &environment;
	return 1;
}

environment_t *stub_environment(void)
{
	return &environment;
}

lf_token_t *_lf_new_token(token_type_t *type, void *value, size_t length)
{
	lf_token_t *token = calloc(1, sizeof(*token));
	assert(token);
	*token = (lf_token_t){ value, length, type, 0 };
	return token;
}

static void done_using(lf_token_t *token)
{
	if (!token || --token->ref_count > 0)
		return;
	free(token->value);
	free(token);
}

bool lf_is_tag_after_stop_tag(environment_t *env, tag_t tag)
{
	return lf_tag_compare(tag, env->stop_tag) > 0;
}

trigger_handle_t _lf_schedule_at_tag(environment_t *env, trigger_t *trigger, tag_t tag,
				     lf_token_t *token)
{
	/* Where the runtime only warns, a test fails. */
	if (env->execution_started)
		assert(lf_tag_compare(tag, env->current_tag) > 0);
	if (token)
		token->ref_count++;
	if (lf_is_tag_after_stop_tag(env, tag)) {
		done_using(token);
		return -1;
	}
	struct event *event = malloc(sizeof(*event));
	assert(event);
	struct event **at = &events;
	while (*at && lf_tag_compare((*at)->tag, tag) <= 0) {
		/* One trigger has one event at a tag. */
		if ((*at)->trigger == trigger && lf_tag_compare((*at)->tag, tag) == 0)
			tag.microstep++;
		at = &(*at)->next;
	}
	*event = (struct event){ tag, trigger, token, trigger->intended_tag, *at };
	*at = event;
	return 1;
}

void lf_request_stop(void)
{
	lf_mutex_lock(&environment.mutex);
	tag_t next = { environment.current_tag.time, environment.current_tag.microstep + 1 };
	if (lf_tag_compare(next, environment.stop_tag) < 0)
		environment.stop_tag = next;
	lf_notify_of_event(&environment);
	lf_mutex_unlock(&environment.mutex);
}

/* --- reactions -------------------------------------------------------------------------------- */

static void enqueue(reaction_t *reaction)
{
	if (!reaction || reaction->queued)
		return;
	reaction_t **at = &ready;
	while (*at && (*at)->level <= reaction->level)
		at = &(*at)->next;
	reaction->queued = true;
	reaction->next = *at;
	*at = reaction;
}

void lf_set_present(lf_port_base_t *port)
{
	port->is_present = true;
	for (size_t i = 0; i < port->reader_count; i++)
		enqueue(port->readers[i]);
}

static void execute_ready(void)
{
	lf_mutex_unlock(&environment.mutex);
	while (ready) {
		reaction_t *reaction = ready;
		ready = reaction->next;
		reaction->queued = false;
		reaction->function(reaction->self);
	}
	lf_mutex_lock(&environment.mutex);
}

void stub_startup(reaction_t *reaction)
{
	reaction_t **at = &startup;
	while (*at)
		at = &(*at)->next;
	*at = reaction;
}

void stub_shutdown(reaction_t *reaction)
{
	reaction_t **at = &shutdown;
	while (*at)
		at = &(*at)->next;
	*at = reaction;
}

void stub_trigger(trigger_t *trigger)
{
	trigger->next = triggers;
	triggers = trigger;
}

void stub_maxwait(interval_t wait)
{
	maxwait = wait;
}

static void enqueue_all(reaction_t *reaction)
{
	while (reaction) {
		reaction_t *next = reaction->next;
		enqueue(reaction);
		reaction = next;
	}
}

/* When a tag may begin: at its time, or, while an input is not known up to it, `maxwait` later. */
static instant_t beginning(tag_t tag)
{
	for (trigger_t *at = triggers; at; at = at->next)
		if (at->is_network && lf_tag_compare(at->last_known_status_tag, tag) < 0)
			return maxwait == FOREVER ? FOREVER : tag.time + maxwait;
	return tag.time;
}

/* The next tag when its time has come. With the lock held. */
static tag_t next_tag(void)
{
	for (;;) {
		tag_t next = environment.stop_tag;
		if (events && lf_tag_compare(events->tag, next) < 0)
			next = events->tag;
		instant_t begin = next.time;
		/* The end of the program waits for no input. */
		if (lf_tag_compare(next, environment.stop_tag) < 0)
			begin = beginning(next);
		instant_t now = lf_time_physical();
		if (now >= begin)
			return next;
		wait_until(begin);
	}
}

static void execute_events(void)
{
	struct event *done = NULL;
	while (events && lf_tag_compare(events->tag, environment.current_tag) <= 0) {
		struct event *event = events;
		events = event->next;
		event->next = done;
		done = event;
		trigger_t *trigger = event->trigger;
		trigger->tmplt.token = event->token;
		trigger->intended_tag = event->intended;
		enqueue(trigger->reaction);
		if (trigger->is_timer && trigger->period > 0) {
			tag_t next = { event->tag.time + trigger->period, 0 };
			_lf_schedule_at_tag(&environment, trigger, next, NULL);
		}
	}
	execute_ready();
	while (done) {
		struct event *next = done->next;
		done_using(done->token);
		free(done);
		done = next;
	}
}

int stub_execute(interval_t duration)
{
	_lf_initialize_trigger_objects();
	lf_mutex_lock(&environment.mutex);
	start_time = lf_time_physical();
	environment.current_tag = (tag_t){ start_time, 0 };
	environment.stop_tag = (tag_t){ start_time + duration, 0 };
	environment.execution_started = true;
	enqueue_all(startup);
	for (trigger_t *at = triggers; at; at = at->next)
		if (at->is_timer && at->offset == 0)
			enqueue(at->reaction);
	execute_ready();
	for (trigger_t *at = triggers; at; at = at->next)
		if (at->is_timer && at->offset + at->period > 0) {
			interval_t first = at->offset > 0 ? at->offset : at->period;
			_lf_schedule_at_tag(&environment, at, (tag_t){ start_time + first, 0 },
					    NULL);
		}
	while (lf_tag_compare(environment.current_tag, environment.stop_tag) < 0) {
		environment.current_tag = next_tag();
		if (lf_tag_compare(environment.current_tag, environment.stop_tag) >= 0)
			enqueue_all(shutdown);
		execute_events();
	}
	lf_mutex_unlock(&environment.mutex);
	return 0;
}
