/*
 * end.c: the ends of channels: made, listed in their handler, closed.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <arpa/inet.h>
#include <endian.h>

#include "internal.h"

/* How long a closing end waits for threads that are still in it. */
#define CLOSE_WAIT_MS 1000

/* In a run: how long who wants a channel that is in use waits before it looks again. */
#define USE_WAIT_NS (100 * NS_IN_US)

/* One end is made at a time, so that two cannot both take the link's last share. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static int class_index(enum stream_class sc)
{
	return sc == SC_CLASS_A ? 0 : sc == SC_CLASS_B ? 1 : 2;
}

struct channel *nc_chan_new(struct nethandler *nh, const struct channel_attrs *attrs)
{
	static const int pcp[3] = {DEFAULT_CLASS_A_PRIO, DEFAULT_CLASS_B_PRIO, DEFAULT_CLASS_TAS_PRIO};
	struct channel *ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	int index = class_index(attrs->sc);
	ch->nh = nh;
	memcpy(ch->dst, attrs->dst, sizeof(ch->dst));
	ch->sidw.s64 = attrs->stream_id;
	ch->sc = attrs->sc;
	ch->pcp_prio = pcp[index];
	ch->tx_sock_prio = nh->tx_sock_prio[index] ? nh->tx_sock_prio[index] : pcp[index];
	ch->payload_size = attrs->size;
	ch->interval_ns = attrs->interval_ns;
	if (attrs->name[0])
		memcpy(ch->name, attrs->name, sizeof(ch->name));
	else
		/* In a run the description has its name. */
		snprintf(ch->name, sizeof(ch->name), nh->in_run ? "#%" PRIu64 : "stream-%" PRIu64,
			 attrs->stream_id);
	ch->pdu.subtype = AVTP_SUBTYPE_NETCHAN;
	ch->pdu.sv = 1;
	ch->pdu.seqnr = 0xFF;
	ch->pdu.stream_id = htobe64(attrs->stream_id);
	ch->pdu.sdl = htons(attrs->size);
	pthread_mutex_init(&ch->use, NULL);
	return ch;
}

void nc_chan_free(struct channel *ch)
{
	if (!ch)
		return;
	pthread_mutex_destroy(&ch->use);
	free(ch->cbp);
	free(ch);
}

static onbeat_status open_context(struct nethandler *nh, struct channel *ch, struct nc_end *end)
{
	static const onbeat_class classes[3] = {ONBEAT_CLASS_A, ONBEAT_CLASS_B,
						ONBEAT_CLASS_SCHEDULED};
	if (nh->in_run) {
		end->context = nc_backend_context();
		return ONBEAT_OK;
	}
	onbeat_channel channel = {
		.name = ch->name,
		.stream_id = ch->sidw.s64,
		.traffic_class = classes[class_index(ch->sc)] |
				 (end->own_host ? ONBEAT_OWN_HOST : 0u),
		.size = ch->payload_size,
		.interval_ns = (int64_t)ch->interval_ns,
		.fixed_delay_ns = (int64_t)ch->sc,
	};
	memcpy(channel.destination, ch->dst, sizeof(channel.destination));
	return nc_open_interface(nh, &channel, 1, &end->context);
}

static void free_end(struct nethandler *nh, struct nc_end *end)
{
	onbeat_talker_close(end->talker);
	onbeat_listener_close(end->listener);
	if (!nh->in_run)
		onbeat_close(end->context);
	while (end->given) {
		struct nc_given *next = end->given->next;
		free(end->given);
		end->given = next;
	}
	pthread_mutex_destroy(&end->lock);
	free(end);
}

static struct nc_end *make_end(struct nethandler *nh, struct channel *ch, bool tx, bool own_host)
{
	struct nc_end *end = calloc(1, sizeof(*end));
	if (!end)
		return NULL;
	end->own_host = own_host;
	pthread_mutex_init(&end->lock, NULL);
	onbeat_status status = open_context(nh, ch, end);
	const char *name = ch->name;
	if (status == ONBEAT_OK)
		status = tx ? onbeat_talker_open(end->context, name, ch->payload_size,
						 &end->talker)
			    : onbeat_listener_open(end->context, name, ch->payload_size,
						   &end->listener);
	/* Reads here wait for messages alone: a description's deadline is for its results. */
	if (status == ONBEAT_OK && end->listener)
		status = onbeat_listener_deadline(end->listener, 0);
	if (status == ONBEAT_OK)
		return end;
	nh_debug(NC_ERROR, NULL, "channel \"%s\": %s", ch->name,
		 status < 0 ? onbeat_last_error() : "the run is over");
	free_end(nh, end);
	return NULL;
}

/* Opens and lists the end, and serves it if there is a callback for it: then no other reader may
 * enter. */
static void append(struct nethandler *nh, struct channel *ch, struct nc_end *end, bool tx)
{
	struct channel **head = tx ? &nh->du_tx_head : &nh->du_rx_head;
	struct channel **tail = tx ? &nh->du_tx_tail : &nh->du_rx_tail;
	pthread_mutex_lock(&nh->core->lock);
	ch->next = NULL;
	if (*head)
		(*tail)->next = ch;
	else
		*head = ch;
	*tail = ch;
	end->wants_service = !tx && nc_service_wanted(ch);
	__atomic_store_n(&ch->end, end, __ATOMIC_SEQ_CST);
	/* A failure is told, and the end never read. */
	nc_service_start(ch);
	pthread_mutex_unlock(&nh->core->lock);
}

static void detach(struct nethandler *nh, struct channel *ch, bool tx)
{
	struct channel **head = tx ? &nh->du_tx_head : &nh->du_rx_head;
	struct channel **tail = tx ? &nh->du_tx_tail : &nh->du_rx_tail;
	pthread_mutex_lock(&nh->core->lock);
	struct channel **at = head, *before = NULL;
	while (*at && *at != ch) {
		before = *at;
		at = &(*at)->next;
	}
	if (*at) {
		*at = ch->next;
		if (*tail == ch)
			*tail = before;
	}
	ch->next = NULL;
	pthread_mutex_unlock(&nh->core->lock);
}

bool nc_end_open(struct nethandler *nh, struct channel *ch, bool tx)
{
	struct channel_attrs attrs = {.stream_id = ch->sidw.s64, .sc = ch->sc,
				      .size = ch->payload_size, .interval_ns = ch->interval_ns};
	memcpy(attrs.dst, ch->dst, sizeof(attrs.dst));
	memcpy(attrs.name, ch->name, sizeof(attrs.name));
	pthread_mutex_lock(&making);
	/* Whether this program talks on the stream that is to be read, or has a reader of what is to
	 * be sent that was opened before it was known. */
	bool own = false;
	struct nc_end *end = nc_admit(nh, &attrs, tx, &own) ? make_end(nh, ch, tx, own) : NULL;
	if (end) {
		if (tx && own)
			nh_debug(NC_WARN, NULL, "stream %" PRIu64 ": its reader in this program was "
				 "created before its talker, and does not get what is sent here",
				 ch->sidw.s64);
		ch->nh = nh;
		__atomic_store_n(&ch->stopping, false, __ATOMIC_RELEASE);
		__atomic_store_n(&ch->ready, true, __ATOMIC_RELEASE);
		append(nh, ch, end, tx);
	}
	pthread_mutex_unlock(&making);
	return end != NULL;
}

static struct channel *create(struct nethandler *nh, struct channel_attrs *attrs, bool tx)
{
	if (!nh || !attrs || !nc_manifest_valid("channel", attrs, 1))
		return NULL;
	struct channel *ch = nc_chan_new(nh, attrs);
	if (ch && !tx && (ch->cbp = calloc(1, sizeof(*ch->cbp))))
		*ch->cbp = (struct cb_priv){.sz = attrs->size, .fd = -1, .ch = ch};
	if (ch && (tx || ch->cbp) && nc_end_open(nh, ch, tx))
		return ch;
	nc_chan_free(ch);
	return NULL;
}

struct channel *chan_create_tx(struct nethandler *nh, struct channel_attrs *attrs)
{
	return create(nh, attrs, true);
}

struct channel *chan_create_rx(struct nethandler *nh, struct channel_attrs *attrs)
{
	return create(nh, attrs, false);
}

int nc_end_enter(struct channel *ch, enum nc_side side, struct nc_end **out)
{
	if (!ch)
		return -EINVAL;
	/* Before it looks: who closes the end takes it away first and looks who is in it then. */
	__atomic_add_fetch(&ch->busy, 1, __ATOMIC_SEQ_CST);
	struct nc_end *end = __atomic_load_n(&ch->end, __ATOMIC_SEQ_CST);
	int result = 0;
	if (!end || (side == NC_TX && !end->talker) || (side == NC_RX && !end->listener))
		result = -EINVAL;
	else if (__atomic_load_n(&ch->stopping, __ATOMIC_ACQUIRE))
		result = -ECANCELED;
	else if (!__atomic_load_n(&ch->ready, __ATOMIC_ACQUIRE))
		result = -EINVAL;
	else if (!nc_backend_begin())
		result = nc_failure(ch, ONBEAT_STOPPED);
	if (result)
		nc_end_leave(ch);
	*out = end;
	return result;
}

void nc_end_leave(struct channel *ch)
{
	__atomic_sub_fetch(&ch->busy, 1, __ATOMIC_SEQ_CST);
}

bool nc_end_is_reserved(struct channel *ch)
{
	struct nc_end *end;
	if (nc_end_enter(ch, NC_EITHER, &end))
		return false;
	onbeat_reservation reservation = {0};
	if (end->talker)
		onbeat_talker_reservation(end->talker, sizeof(reservation), &reservation);
	else
		onbeat_listener_reservation(end->listener, sizeof(reservation), &reservation);
	nc_end_leave(ch);
	switch (reservation.state) {
	case ONBEAT_STREAM_UNRESERVED:
	case ONBEAT_STREAM_READY:
	case ONBEAT_STREAM_READY_FAILED:
		return true;
	default:
		return false;
	}
}

int nc_chan_lock(struct channel *ch)
{
	if (!nc_in_run() && timedc_wait_limit() == INT64_MAX)
		return pthread_mutex_lock(&ch->use) ? -EIO : 0;
	/* Virtual time would stand still while a thread waits for a mutex, and no limit ends that. */
	while (pthread_mutex_trylock(&ch->use) != 0) {
		onbeat *context = nc_backend_context();
		onbeat_status status = ONBEAT_STOPPED;
		if (context)
			status = nc_sleep(context, (int64_t)tai_get_ns() + USE_WAIT_NS, NULL);
		if (status != ONBEAT_OK)
			return nc_failure(ch, status);
	}
	return 0;
}

int nc_end_use(struct channel *ch, enum nc_side side, struct nc_end **end)
{
	int result = nc_end_enter(ch, side, end);
	if (result)
		return result;
	result = nc_chan_lock(ch);
	if (result) {
		nc_end_leave(ch);
	} else if (__atomic_load_n(&ch->stopping, __ATOMIC_ACQUIRE)) {
		nc_end_done(ch);
		result = -ECANCELED;
	}
	return result;
}

void nc_end_done(struct channel *ch)
{
	pthread_mutex_unlock(&ch->use);
	nc_end_leave(ch);
}

bool nc_await_zero(const unsigned *value)
{
	struct timespec step = {.tv_nsec = NS_IN_MS};
	for (int i = 0; i < CLOSE_WAIT_MS; i++) {
		if (__atomic_load_n(value, __ATOMIC_SEQ_CST) == 0)
			return true;
		/* Threads of a run leave in its time. */
		onbeat *context = nc_in_run() ? nc_backend_context() : NULL;
		int64_t next = (int64_t)tai_get_ns() + NS_IN_MS;
		if (!context || onbeat_sleep_until(context, next, NULL) != ONBEAT_OK) {
			nc_own(1);
			nanosleep(&step, NULL);
			nc_own(-1);
		}
	}
	return false;
}

bool nc_end_close(struct channel *ch)
{
	struct nc_end *end = ch->end;
	struct nethandler *nh = ch->nh;
	if (!end)
		return __atomic_load_n(&ch->busy, __ATOMIC_SEQ_CST) == 0;
	if (nc_serving() == ch) {
		chan_stop(ch);
		nh_debug(NC_WARN, ch, "its own callback closes it: it is stopped, and freed with the "
				      "handler");
		return false;
	}
	nc_pipe_drain(ch);
	chan_stop(ch);
	/* Off the list first: no callback that is registered now serves it again. */
	detach(nh, ch, end->talker != NULL);
	nc_service_stop(ch);
	nc_pipe_close(ch);
	if (ch->cbp)
		nc_callback_forget(nh, ch->cbp);
	__atomic_store_n(&ch->end, NULL, __ATOMIC_SEQ_CST);
	if (nc_await_zero(&ch->busy)) {
		free_end(nh, end);
		return true;
	}
	nh->core->abandoned = true;
	nh_debug(NC_WARN, ch, "a thread is still in the channel: neither it nor its handler is freed");
	return false;
}

void chan_destroy(struct channel **ch)
{
	if (!ch || !*ch)
		return;
	if (nc_end_close(*ch))
		nc_chan_free(*ch);
	*ch = NULL;
}

static int add(struct nethandler *nh, struct channel *ch, bool tx)
{
	if (!nh || !ch)
		return -EINVAL;
	if (ch->end)
		return ch->nh == nh && (ch->end->talker != NULL) == tx ? 0 : -EBUSY;
	return nc_end_open(nh, ch, tx) ? 0 : -EIO;
}

int nh_add_tx(struct nethandler *nh, struct channel *ch)
{
	return add(nh, ch, true);
}

int nh_add_rx(struct nethandler *nh, struct channel *ch)
{
	return add(nh, ch, false);
}

static int remove_end(struct channel *ch, bool tx)
{
	if (!ch || !ch->nh || !ch->end || (ch->end->talker != NULL) != tx)
		return -ENOMEM;
	if (!nc_end_close(ch))
		return -EBUSY;
	ch->nh = NULL;
	return 0;
}

int nh_remove_tx(struct channel *ch)
{
	return remove_end(ch, true);
}

int nh_remove_rx(struct channel *ch)
{
	return remove_end(ch, false);
}
