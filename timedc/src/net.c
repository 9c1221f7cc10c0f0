/*
 * net.c: network channels: all are opened before the program's start, and no call of theirs is
 * aborted halfway. Calls that wait end at the deadline by themselves (timedc_wait_limit).
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "wrap.h"

#include <errno.h>
#include <netchan_standalone.h>
#include <string.h>
#include <timedc_avtp.h>

#include "../../compat/src/timedc_hooks.h"

/* Opens an end of what an abstract channel is. Another host's end is none of this program's: a task
 * that comes to it all the same hears why. */
static void open_bound(const struct timedc_net *net)
{
	struct timedc_bound *bound = net->bound;
	onbeat *context = timedc_backend_context();
	if (net->is_talker ? bound->talker != NULL : bound->listener != NULL)
		return;
	if (!context)
		timedc_die("the channel %s is of a run: there is none, and ONBEAT_INTERFACE names "
			   "no interface", bound->channel);
	onbeat_status status =
		net->is_talker
			? onbeat_talker_open(context, bound->channel, bound->size, &bound->talker)
			: onbeat_listener_open(context, bound->channel, bound->size,
					       &bound->listener);
	if (status == ONBEAT_E_REFUSED)
		bound->refused[!net->is_talker] = strdup(onbeat_last_error());
	else if (status != ONBEAT_OK)
		timedc_die("%s", onbeat_last_error());
}

void timedc_net_open(void)
{
	bool named = false;
	for (const struct timedc_unit *unit = timedc_units(); unit; unit = unit->next)
		for (int i = 0; i < unit->net_count; i++)
			named |= !unit->nets[i].bound;
	if (named)
		nc_timedc_context();
	for (const struct timedc_unit *unit = timedc_units(); unit; unit = unit->next)
		for (int i = 0; i < unit->net_count; i++) {
			const struct timedc_net *net = &unit->nets[i];
			/* The library changes no row of a manifest. */
			void *rows = (void *)(uintptr_t)net->array;
			if (net->bound)
				open_bound(net);
			else if (net->is_first_generation)
				pdu_create_standalone(net->name, net->is_talker, rows, net->rows);
			else
				chan_create_standalone(net->name, net->is_talker, rows, net->rows);
		}
}

int64_t timedc_wait_limit(void)
{
	timedc_ns limit = timedc_limit(timedc_self);
	if (limit == TIMEDC_INFTY || timedc_backend_in_run())
		return limit;
	return (int64_t)tai_get_ns() + (limit - timedc_now());
}

/* After a call that may have waited. */
static int waited(struct timedc_thread *thread, int result)
{
	if (thread && result == -ECANCELED)
		timedc_backend_look();
	/* Who woke after the deadline is late, though the wait was for an instant before it. */
	bool is_late = thread && timedc_backend_is_virtual() && timedc_now() > timedc_limit(thread);
	if (thread && (result == -ETIMEDOUT || is_late))
		timedc_expire(thread);
	timedc_wait_ends(thread);
	return result;
}

/* A value went or came. An end's own name may be gone when the trace is written. A call of the
 * first generation makes one of the later: that is no second value. */
static int moved(struct timedc_thread *thread, enum timedc_event event, const struct channel *end,
		 int result)
{
	if (!timedc_tracing || !thread || thread->deferred > 1 || result < 0)
		return result;
	for (const struct timedc_unit *unit = timedc_units(); unit; unit = unit->next)
		for (int i = 0; i < unit->net_count; i++)
			if (strcmp(unit->nets[i].name, end->name) == 0) {
				timedc_trace(thread, event, unit->nets[i].name, timedc_now(), 0);
				return result;
			}
	return result;
}

/* May wait; the first one of main is the program's start. */
#define WRAP_WAIT(name, parameters, arguments, traced) \
	WRAP_DECLARE(int, name, parameters); \
	int __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		if (thread) \
			timedc_begin(); \
		timedc_wait_begins(thread); \
		int result = traced(waited(thread, __real_##name arguments)); \
		timedc_resume(thread); \
		return result; \
	}

#define UNTRACED(result) (result)
#define WROTE(result) moved(thread, TIMEDC_E_WRITE, end, (result))
#define WAS_READ(result) moved(thread, TIMEDC_E_READ, end, (result))

typedef struct timedc_avtp pdu;
typedef struct channel channel;

WRAP_WAIT(pdu_send, (pdu *end), (end), WROTE)
WRAP_WAIT(pdu_send_now, (pdu *end, void *data), (end, data), WROTE)
WRAP_WAIT(pdu_send_now_wait, (pdu *end, void *data), (end, data), WROTE)
WRAP_WAIT(pdu_read, (pdu *end, void *data), (end, data), WAS_READ)
WRAP_WAIT(pdu_read_wait, (pdu *end, void *data), (end, data), WAS_READ)
WRAP_WAIT(chan_send, (channel *end, uint64_t *tx_ns), (end, tx_ns), WROTE)
WRAP_WAIT(chan_send_now, (channel *end, void *data), (end, data), WROTE)
WRAP_WAIT(chan_send_now_wait, (channel *end, void *data), (end, data), WROTE)
WRAP_WAIT(chan_read, (channel *end, void *data), (end, data), WAS_READ)
WRAP_WAIT(chan_read_wait, (channel *end, void *data), (end, data), WAS_READ)
WRAP_WAIT(chan_ready_timedwait, (channel *end, uint64_t timeout_ns), (end, timeout_ns), UNTRACED)
WRAP_WAIT(wait_for_tx_slot, (channel *end), (end), UNTRACED)
WRAP_WAIT(pt_next_cycle, (struct periodic_timer *timer), (timer), UNTRACED)

/* --- what does not wait ----------------------------------------------------------------------- */

WRAP(pdu *, pdu_create_standalone, (const char *name, bool tx, struct net_fifo *rows, int count),
     (name, tx, rows, count))
WRAP(pdu *, pdu_create,
     (struct nethandler *nh, unsigned char *to, uint64_t id, enum stream_class class,
      uint16_t size),
     (nh, to, id, class, size))
WRAP_VOID(pdu_destroy, (pdu **end), (end))
WRAP(int, pdu_update, (pdu *end, uint32_t timestamp, void *data), (end, timestamp, data))
WRAP(int, nf_tx_create, (const char *name, struct net_fifo *rows, int count), (name, rows, count))
WRAP(int, nf_rx_create, (const char *name, struct net_fifo *rows, int count), (name, rows, count))
WRAP_GETS(struct net_fifo *, nf_get_chan,
	  (const char *name, const struct net_fifo *rows, int count), (name, rows, count))
WRAP(int, nf_set_nic, (const char *name), (name))
WRAP_VOID(nf_set_logfile, (const char *name), (name))
WRAP(struct nethandler *, nh_init, (const char *name, size_t size, const char *log),
     (name, size, log))
WRAP(int, nh_init_standalone, (void), ())
WRAP_VOID(nf_stop_rx, (struct nethandler *nh), (nh))
WRAP(channel *, chan_create_standalone,
     (const char *name, bool tx, struct channel_attrs *rows, int count), (name, tx, rows, count))
WRAP(channel *, chan_create_tx, (struct nethandler *nh, struct channel_attrs *row), (nh, row))
WRAP(channel *, chan_create_rx, (struct nethandler *nh, struct channel_attrs *row), (nh, row))
WRAP_VOID(chan_destroy, (channel **end), (end))
WRAP(bool, chan_ready, (channel *end), (end))
WRAP(bool, chan_stop, (channel *end), (end))
WRAP(bool, chan_valid, (channel *end), (end))
WRAP_VOID(chan_dump_state, (channel *end), (end))
WRAP(int, chan_update, (channel *end, uint32_t timestamp, void *data), (end, timestamp, data))
WRAP(uint64_t, chan_time_to_tx, (channel *end), (end))
WRAP(int64_t, chan_delay, (channel *end, uint64_t target_ns), (end, target_ns))
WRAP_GETS(struct channel_attrs *, nc_get_chan,
	  (const char *name, const struct channel_attrs *rows, int count), (name, rows, count))
WRAP(int, nc_set_nic, (const char *name), (name))
WRAP_VOID(nc_set_logfile, (const char *name), (name))
WRAP(struct nethandler *, nh_create_init, (const char *name, size_t size, const char *log),
     (name, size, log))
WRAP(int, nh_create_init_standalone, (void), ())
WRAP_VOID(nh_destroy, (struct nethandler **nh), (nh))
WRAP_VOID(nh_destroy_standalone, (void), ())
WRAP_VOID(nh_stop, (struct nethandler *nh), (nh))
WRAP_VOID(nh_rotate_logs, (struct nethandler *nh), (nh))
WRAP_VOID(nh_list_active_channels, (struct nethandler *nh), (nh))
WRAP(int, nh_get_num_tx, (struct nethandler *nh), (nh))
WRAP(int, nh_get_num_rx, (struct nethandler *nh), (nh))
WRAP(int, nh_feed_pdu, (struct nethandler *nh, struct avtpdu_cshdr *du), (nh, du))
WRAP(uint64_t, tai_get_ns, (void), ())
WRAP(uint64_t, real_get_ns, (void), ())

/* --- onbeat.h, for programs that call it themselves ------------------------------------------- */

typedef struct onbeat_talker talker;
typedef struct onbeat_listener listener;
typedef struct onbeat_message message;

WRAP(onbeat_status, onbeat_talker_open,
     (onbeat *context, const char *name, size_t size, talker **out), (context, name, size, out))
WRAP_VOID(onbeat_talker_close, (talker *end), (end))
WRAP(onbeat_status, onbeat_write, (talker *end, const void *data, int64_t *capture_ns),
     (end, data, capture_ns))
WRAP(onbeat_status, onbeat_try_write, (talker *end, const void *data, int64_t *capture_ns),
     (end, data, capture_ns))
WRAP(onbeat_status, onbeat_write_wait,
     (talker *end, const void *data, int64_t *capture_ns, int64_t *error_ns),
     (end, data, capture_ns, error_ns))
WRAP(onbeat_status, onbeat_write_at,
     (talker *end, const void *data, int64_t at_ns, int64_t *capture_ns),
     (end, data, at_ns, capture_ns))
WRAP(onbeat_status, onbeat_rendezvous,
     (talker *end, const void *data, listener *other, void *received, message *info),
     (end, data, other, received, info))
WRAP(onbeat_status, onbeat_select,
     (onbeat *context, const listener *const *ends, size_t count, int64_t timeout_ns,
      size_t *index),
     (context, ends, count, timeout_ns, index))
WRAP(onbeat_status, onbeat_listener_open,
     (onbeat *context, const char *name, size_t size, listener **out), (context, name, size, out))
WRAP_VOID(onbeat_listener_close, (listener *end), (end))
WRAP(onbeat_status, onbeat_read, (listener *end, void *data, message *info), (end, data, info))
WRAP(onbeat_status, onbeat_read_wait, (listener *end, void *data, message *info),
     (end, data, info))
WRAP(onbeat_status, onbeat_try_read, (listener *end, void *data, message *info),
     (end, data, info))
WRAP(onbeat_status, onbeat_read_latest, (listener *end, void *data, message *info),
     (end, data, info))
WRAP(onbeat_status, onbeat_read_timeout,
     (listener *end, void *data, int64_t timeout_ns, message *info),
     (end, data, timeout_ns, info))
WRAP(onbeat_status, onbeat_now, (onbeat *context, int64_t *now_ns), (context, now_ns))
WRAP(onbeat_status, onbeat_sleep_until, (onbeat *context, int64_t until_ns, int64_t *woke_ns),
     (context, until_ns, woke_ns))
WRAP(onbeat_status, onbeat_work, (onbeat *context, int64_t work_ns), (context, work_ns))
WRAP(onbeat_status, onbeat_work_until,
     (onbeat *context, int64_t work_ns, int64_t until_ns, int32_t priority, int64_t deadline_ns),
     (context, work_ns, until_ns, priority, deadline_ns))

/* --- abstract channels that are network channels ---------------------------------------------- */

static void need(const void *end, const char *refused)
{
	if (!end)
		timedc_die("%s", refused ? refused : "a channel is used before the program's start");
}

/* After a write or a read. */
static int done(struct timedc_thread *thread, enum timedc_event event,
		const struct timedc_bound *bound, onbeat_status status)
{
	if (status < 0)
		timedc_die("%s", onbeat_last_error());
	int result = status == ONBEAT_OK	  ? 0
		     : status == ONBEAT_STOPPED   ? -ECANCELED
		     : status == ONBEAT_LINK_DOWN ? -ENETDOWN
						  : -ETIMEDOUT;
	result = waited(thread, result);
	if (timedc_tracing && thread && result == 0)
		timedc_trace(thread, event, bound->channel, timedc_now(), 0);
	timedc_resume(thread);
	return result;
}

int timedc_bound_write(struct timedc_bound *bound, const void *value)
{
	struct timedc_thread *thread = timedc_defer();
	if (thread)
		timedc_begin();
	need(bound->talker, bound->refused[0]);
	timedc_wait_begins(thread);
	onbeat_talker_limit(bound->talker, timedc_wait_limit());
	onbeat_status status = __real_onbeat_write(bound->talker, value, NULL);
	onbeat_talker_limit(bound->talker, INT64_MAX);
	return done(thread, TIMEDC_E_WRITE, bound, status);
}

int timedc_bound_read(struct timedc_bound *bound, void *value)
{
	struct timedc_thread *thread = timedc_defer();
	if (thread)
		timedc_begin();
	need(bound->listener, bound->refused[1]);
	timedc_wait_begins(thread);
	onbeat_listener_limit(bound->listener, timedc_wait_limit());
	onbeat_status status = __real_onbeat_read(bound->listener, value, NULL);
	onbeat_listener_limit(bound->listener, INT64_MAX);
	return done(thread, TIMEDC_E_READ, bound, status);
}
