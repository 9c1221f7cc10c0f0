/*
 * channel.c: sending, reading and waiting.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <arpa/inet.h>

#include "internal.h"

/* The rate's tolerance: a talker may be early by an eighth of the interval, at most by this. */
#define TOLERANCE_MAX_NS (125 * NS_IN_US)

/* chan_send() takes instants up to so far ahead: what is further was not meant. */
#define AHEAD_MAX_NS ((uint64_t)NS_IN_HOUR)

/* In a run: how long a reader waits before it looks whether it was stopped. */
#define SLICE_NS (100 * NS_IN_MS)

/* What lies further ahead than this is from before the timestamp's last wrap. */
#define FUTURE_NS NS_IN_SEC

void nc_note(struct channel *ch, uint8_t sequence, int64_t capture_ns)
{
	ch->pdu.seqnr = sequence;
	ch->pdu.tv = 1;
	ch->pdu.avtp_timestamp = htonl((uint32_t)capture_ns);
}

int64_t nc_rebuild(uint32_t timestamp, int64_t now_ns)
{
	int64_t latest = now_ns + FUTURE_NS;
	return latest - (int64_t)((uint32_t)latest - timestamp);
}

/* --- state ------------------------------------------------------------------------------------ */

static bool is_open(const struct channel *ch)
{
	return ch && __atomic_load_n(&ch->ready, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&ch->stopping, __ATOMIC_ACQUIRE);
}

bool chan_valid(struct channel *ch)
{
	return ch && ch->nh && ch->end && ch->sidw.s64 && ch->payload_size && ch->interval_ns &&
	       is_open(ch);
}

/* With reservation: once bandwidth is reserved. */
bool chan_ready(struct channel *ch)
{
	return is_open(ch) && (!ch->nh || !ch->nh->use_srp || ch->nh->in_run ||
			       nc_end_is_reserved(ch));
}

int chan_ready_timedwait(struct channel *ch, uint64_t timeout_ns)
{
	if (!ch)
		return -EINVAL;
	if (timeout_ns > INT64_MAX / 4)
		timeout_ns = INT64_MAX / 4;
	uint64_t until = tai_get_ns() + timeout_ns;
	uint64_t step = timeout_ns < 10 * NS_IN_MS ? timeout_ns : 10 * NS_IN_MS;
	while (!chan_ready(ch)) {
		onbeat *context = nc_backend_context();
		uint64_t now = tai_get_ns();
		if (now >= until || !context || !nc_backend_begin())
			return -ETIMEDOUT;
		uint64_t next = now + step < until ? now + step : until;
		onbeat_status status = nc_sleep(context, (int64_t)next, NULL);
		if (status != ONBEAT_OK)
			return nc_failure(NULL, status);
	}
	return 0;
}

bool chan_stop(struct channel *ch)
{
	if (!ch)
		return false;
	/* As nc_end_enter(): the end stays while this is in it. */
	__atomic_add_fetch(&ch->busy, 1, __ATOMIC_SEQ_CST);
	struct nc_end *end = __atomic_load_n(&ch->end, __ATOMIC_SEQ_CST);
	bool stops = end && !__atomic_exchange_n(&ch->stopping, true, __ATOMIC_ACQ_REL);
	if (stops) {
		__atomic_store_n(&ch->ready, false, __ATOMIC_RELEASE);
		/* In a run the context is the program's: it would stop all of its channels. */
		if (!ch->nh->in_run)
			onbeat_stop(end->context);
	}
	nc_end_leave(ch);
	return stops;
}

uint64_t get_class_delay_bound_ns(struct channel *ch)
{
	return ch ? (uint64_t)ch->sc : 0;
}

static const char *class_name(enum stream_class sc)
{
	return sc == SC_CLASS_A ? "A" : sc == SC_CLASS_B ? "B" : "scheduled";
}

void chan_dump_state(struct channel *ch)
{
	if (!ch || !ch->nh) {
		printf("no channel\n");
		return;
	}
	printf("%18s : %" PRIu64 " \"%s\"%s\n", "stream", ch->sidw.s64, ch->name,
	       ch->stopping ? ", stopped" : ch->end ? "" : ", not open");
	if (!ch->nh->in_run)
		printf("%18s : %s, %u Mb/s\n", "interface", ch->nh->ifname, ch->nh->link_speed);
	printf("%18s : %02x:%02x:%02x:%02x:%02x:%02x\n", "destination", ch->dst[0], ch->dst[1],
	       ch->dst[2], ch->dst[3], ch->dst[4], ch->dst[5]);
	printf("%18s : %s, PCP %d, socket priority %d\n", "class", class_name(ch->sc), ch->pcp_prio,
	       ch->tx_sock_prio);
	printf("%18s : %u octets every %" PRIu64 " ns\n", "message", ch->payload_size,
	       ch->interval_ns);
}

/* --- sending ---------------------------------------------------------------------------------- */

int chan_update(struct channel *ch, uint32_t ts, void *data)
{
	if (!ch || !data)
		return -ENOMEM;
	int result = nc_chan_lock(ch);
	if (result)
		return result;
	memcpy(ch->payload, data, ch->payload_size);
	ch->pdu.tv = 1;
	ch->pdu.avtp_timestamp = htonl(ts);
	pthread_mutex_unlock(&ch->use);
	return 0;
}

void *chan_get_payload(struct channel *ch)
{
	return ch ? ch->payload : NULL;
}

static uint64_t tolerance(const struct channel *ch)
{
	uint64_t eighth = ch->interval_ns / 8;
	return eighth < (uint64_t)TOLERANCE_MAX_NS ? eighth : (uint64_t)TOLERANCE_MAX_NS;
}

/* Classes A and B keep the phase of their first messages. */
static bool keeps_phase(const struct channel *ch)
{
	return ch->sc == SC_CLASS_A || ch->sc == SC_CLASS_B;
}

/* By how much a message may come before it is due: the second one sets the phase, if it comes up
 * to half an interval before that. */
static uint64_t early(const struct channel *ch)
{
	bool sets = keeps_phase(ch) && __atomic_load_n(&ch->second, __ATOMIC_RELAXED);
	return sets ? ch->interval_ns / 2 : tolerance(ch);
}

/* When the message after one at `at` is due, as onbeat's own account of the rate has it. */
static uint64_t due_after(const struct channel *ch, uint64_t at)
{
	uint64_t interval = ch->interval_ns, due = ch->next_tx_ns ? ch->next_tx_ns : at;
	if (!keeps_phase(ch))
		return (at > due ? at : due) + interval;
	if (ch->second && at < due)
		due = at;
	uint64_t last = due + interval + tolerance(ch);
	uint64_t missed = at > last && interval ? (at - last + interval - 1) / interval : 0;
	return due + interval * (1 + missed);
}

static void note_sent(struct channel *ch, int64_t capture)
{
	nc_note(ch, (uint8_t)(ch->pdu.seqnr + 1), capture);
	uint64_t next = due_after(ch, (uint64_t)capture);
	__atomic_store_n(&ch->second, !ch->next_tx_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&ch->next_tx_ns, next, __ATOMIC_RELAXED);
}

static void sent(struct channel *ch, int64_t capture)
{
	note_sent(ch, capture);
	if (ch->nh->logger)
		log_tx(ch->nh->logger, &ch->pdu, (uint64_t)capture, tai_get_ns(), 0);
}

static void log_wakeup(struct channel *ch, int64_t target, int64_t actual)
{
	log_wakeup_delay(ch->nh->logger, (uint64_t)target, (uint64_t)target, (uint64_t)actual);
}

static onbeat_status sleep_until(struct channel *ch, struct nc_end *end, int64_t target)
{
	int64_t woke = target;
	onbeat_status status = nc_sleep(end->context, target, &woke);
	if (status == ONBEAT_OK)
		log_wakeup(ch, target, woke);
	return status;
}

/* From when on the rate allows a message. */
static uint64_t slot(const struct channel *ch)
{
	uint64_t next = __atomic_load_n(&ch->next_tx_ns, __ATOMIC_RELAXED), before = early(ch);
	return next > before ? next - before : 0;
}

/* When a message will be captured that is written at `at`. */
static int64_t capture_of(const struct channel *ch, uint64_t at)
{
	uint64_t from = slot(ch), due = __atomic_load_n(&ch->next_tx_ns, __ATOMIC_RELAXED);
	return (int64_t)(at >= from ? at : keeps_phase(ch) ? due : from);
}

/* Whether the wait for capture + D would end at the limit. D is that of the class, but in a
 * run, which knows it. */
static bool wait_is_cut(const struct channel *ch)
{
	int64_t limit = timedc_wait_limit();
	return limit != INT64_MAX && capture_of(ch, tai_get_ns()) + (int64_t)ch->sc > limit;
}

static onbeat_status write_wait(struct channel *ch, struct nc_end *end)
{
	int64_t capture = 0, error = 0;
	onbeat_status status;
	if (!ch->nh->in_run && (ch->nh->logger || wait_is_cut(ch))) {
		/* What was sent is noted, and the log wants to know when: before the wait. */
		status = onbeat_write(end->talker, ch->payload, &capture);
		if (status != ONBEAT_OK)
			return status;
		sent(ch, capture);
		return sleep_until(ch, end, capture + (int64_t)ch->sc);
	}
	uint64_t now = tai_get_ns();
	int64_t expected = capture_of(ch, now);
	bool is_free = expected == (int64_t)now;
	status = onbeat_write_wait(end->talker, ch->payload, &capture, &error);
	/* It is on its way all the same: the rate did not hold it back, or not up to the limit. */
	if (status == ONBEAT_TIMED_OUT && (is_free || expected <= timedc_wait_limit()))
		sent(ch, expected);
	if (status != ONBEAT_OK)
		return status;
	note_sent(ch, capture);
	if (ch->nh->logger) {
		/* In virtual time the clock stands still from the wake-up on. */
		int64_t woke = (int64_t)tai_get_ns();
		log_tx(ch->nh->logger, &ch->pdu, (uint64_t)capture, (uint64_t)capture, 0);
		log_wakeup(ch, woke + error, woke);
	}
	return ONBEAT_OK;
}

/* What would be sent after the limit is not sent. */
static onbeat_status write_at(struct channel *ch, struct nc_end *end, int64_t at, int64_t *capture)
{
	int64_t leaves = capture_of(ch, (uint64_t)at);
	if (leaves > timedc_wait_limit())
		return nc_sleep(end->context, leaves, NULL);
	return onbeat_write_at(end->talker, ch->payload, at, capture);
}

/* Until when calls at the end wait. */
static void set_limit(struct nc_end *end, int64_t until)
{
	if (end->talker)
		onbeat_talker_limit(end->talker, until);
	else
		onbeat_listener_limit(end->listener, until);
}

static int finish(struct channel *ch, struct nc_end *end, onbeat_status status)
{
	set_limit(end, INT64_MAX);
	int result = status == ONBEAT_OK ? ch->payload_size : nc_failure(ch, status);
	nc_end_done(ch);
	return result;
}

int chan_send(struct channel *ch, uint64_t *tx_ns)
{
	struct nc_end *end;
	int result = nc_end_use(ch, NC_TX, &end);
	if (result)
		return result;
	int64_t capture = 0;
	uint64_t now = tx_ns ? tai_get_ns() : 0;
	onbeat_status status;
	if (tx_ns && *tx_ns > now && *tx_ns - now > AHEAD_MAX_NS) {
		nc_end_done(ch);
		return -EINVAL;
	}
	set_limit(end, timedc_wait_limit());
	if (tx_ns && *tx_ns > now)
		status = write_at(ch, end, (int64_t)*tx_ns, &capture);
	else
		status = onbeat_write(end->talker, ch->payload, &capture);
	if (status == ONBEAT_OK) {
		sent(ch, capture);
		if (tx_ns)
			*tx_ns = (uint64_t)capture;
	}
	return finish(ch, end, status);
}

int chan_send_now(struct channel *ch, void *data)
{
	struct nc_end *end;
	int result = data ? nc_end_use(ch, NC_TX, &end) : -EINVAL;
	if (result)
		return result;
	int64_t capture = 0;
	memcpy(ch->payload, data, ch->payload_size);
	set_limit(end, timedc_wait_limit());
	onbeat_status status = onbeat_write(end->talker, ch->payload, &capture);
	if (status == ONBEAT_OK)
		sent(ch, capture);
	return finish(ch, end, status);
}

int chan_send_now_wait(struct channel *ch, void *data)
{
	struct nc_end *end;
	int result = data ? nc_end_use(ch, NC_TX, &end) : -EINVAL;
	if (result)
		return result;
	memcpy(ch->payload, data, ch->payload_size);
	set_limit(end, timedc_wait_limit());
	return finish(ch, end, write_wait(ch, end));
}

/* --- reading ---------------------------------------------------------------------------------- */

/* How long to wait before looking again: less than SLICE_NS when the limit is nearer. */
static int64_t slice(void)
{
	int64_t limit = timedc_wait_limit();
	if (limit == INT64_MAX)
		return SLICE_NS;
	int64_t now = (int64_t)tai_get_ns();
	if (limit <= now)
		return 0;
	return limit - now < SLICE_NS ? limit - now : SLICE_NS;
}

/* In a run a stopped channel's context continues, so its reader looks from time to time. */
static onbeat_status await(struct channel *ch, struct nc_end *end)
{
	const onbeat_listener *listener = end->listener;
	while (ch->nh->in_run) {
		size_t index;
		int64_t wait_ns = slice();
		onbeat_status status = onbeat_select(end->context, &listener, 1, wait_ns, &index);
		if (__atomic_load_n(&ch->stopping, __ATOMIC_ACQUIRE))
			return ONBEAT_STOPPED;
		if (status != ONBEAT_TIMED_OUT || wait_ns < SLICE_NS)
			return status;
	}
	return ONBEAT_OK;
}

static void received(struct channel *ch, const onbeat_message *info, const void *data, bool wait)
{
	nc_note(ch, (uint8_t)info->sequence, info->capture_ns);
	memcpy(ch->payload, data, ch->payload_size);
	if (!ch->nh->logger)
		return;
	int64_t target = info->capture_ns + (int64_t)ch->sc;
	log_rx(ch->nh->logger, &ch->pdu, (uint64_t)info->arrived_ns,
	       (uint64_t)(info->capture_ns + info->latency_ns));
	if (wait)
		log_wakeup(ch, target, target - info->wakeup_error_ns);
}

static onbeat_status read_given(struct channel *ch, struct nc_end *end, uint32_t timestamp,
				bool wait)
{
	int64_t now = (int64_t)tai_get_ns();
	int64_t capture = nc_rebuild(timestamp, now);
	nc_note(ch, (uint8_t)(ch->pdu.seqnr + 1), capture);
	return wait ? sleep_until(ch, end, capture + (int64_t)ch->sc) : ONBEAT_OK;
}

static int chan_receive(struct channel *ch, void *data, bool wait)
{
	struct nc_end *end;
	int result = data ? nc_end_use(ch, NC_RX, &end) : -EINVAL;
	if (result)
		return result;
	uint32_t timestamp;
	if (end->wants_service) {
		/* A callback gets this channel's messages. */
		nc_end_done(ch);
		return -EBUSY;
	}
	if (nc_given_take(ch, end, data, &timestamp))
		return finish(ch, end, read_given(ch, end, timestamp, wait));
	onbeat_message info = {0};
	set_limit(end, timedc_wait_limit());
	onbeat_status status = await(ch, end);
	if (status == ONBEAT_OK)
		status = wait ? onbeat_read_wait(end->listener, data, &info)
			      : onbeat_read(end->listener, data, &info);
	if (status == ONBEAT_OK)
		received(ch, &info, data, wait);
	return finish(ch, end, status);
}

int chan_read(struct channel *ch, void *data)
{
	return chan_receive(ch, data, false);
}

int chan_read_wait(struct channel *ch, void *data)
{
	return chan_receive(ch, data, true);
}

/* --- waiting ---------------------------------------------------------------------------------- */

uint64_t chan_time_to_tx(struct channel *ch)
{
	if (!chan_valid(ch))
		return UINT64_MAX;
	uint64_t now = tai_get_ns();
	return slot(ch) > now ? slot(ch) - now : 0;
}

int wait_for_tx_slot(struct channel *ch)
{
	struct nc_end *end;
	int result = nc_end_enter(ch, NC_TX, &end);
	if (result)
		return result;
	onbeat_status status = nc_sleep(end->context, (int64_t)slot(ch), NULL);
	result = status == ONBEAT_OK ? 0 : nc_failure(ch, status);
	nc_end_leave(ch);
	return result;
}

int64_t chan_delay(struct channel *ch, uint64_t target_ns)
{
	struct nc_end *end;
	if (target_ns > INT64_MAX || nc_end_enter(ch, NC_EITHER, &end))
		return INT64_MIN;
	int64_t woke = 0;
	onbeat_status status = nc_sleep(end->context, (int64_t)target_ns, &woke);
	if (status == ONBEAT_OK)
		log_wakeup(ch, (int64_t)target_ns, woke);
	else
		nc_failure(ch, status);
	nc_end_leave(ch);
	return status == ONBEAT_OK ? (int64_t)target_ns - woke : INT64_MIN;
}
