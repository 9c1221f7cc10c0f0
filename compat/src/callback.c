/*
 * callback.c: callbacks, the threads that call them, and messages that are given by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "internal.h"

/* How long a full descriptor is waited for before the thread looks whether it shall end. */
#define FULL_MS 100

static _Thread_local struct channel *serving;

struct channel *nc_serving(void)
{
	return serving;
}

static struct nc_callback *find(struct nc_core *core, uint64_t stream_id)
{
	for (size_t i = 0; i < core->callback_count; i++)
		if (core->callbacks[i].stream_id == stream_id)
			return &core->callbacks[i];
	return NULL;
}

/* With the lock held. */
static struct channel *reader(struct nethandler *nh, uint64_t stream_id)
{
	struct channel *ch = nh->du_rx_head;
	while (ch && ch->sidw.s64 != stream_id)
		ch = ch->next;
	return ch;
}

/* The standard callback with an end's own data only says what happens without any. */
static bool is_default(const struct nc_callback *callback)
{
	const struct cb_priv *cbp = callback->priv_data;
	return callback->cb == nh_std_cb && cbp && cbp->ch;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void call(struct channel *ch, struct nc_end *end)
{
	struct nc_core *core = ch->nh->core;
	pthread_mutex_lock(&core->lock);
	const struct nc_callback *found = find(core, ch->sidw.s64);
	struct nc_callback callback = found ? *found : (struct nc_callback){0};
	end->calling = callback.priv_data;
	pthread_mutex_unlock(&core->lock);
	if (!callback.cb)
		return;
	callback.cb(callback.priv_data, &ch->pdu);
	pthread_mutex_lock(&core->lock);
	end->calling = NULL;
	pthread_mutex_unlock(&core->lock);
}

static void *serve(void *argument)
{
	struct channel *ch = argument;
	struct nc_end *end = ch->end;
	serving = ch;
	while (!__atomic_load_n(&end->service_ends, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&ch->stopping, __ATOMIC_ACQUIRE)) {
		onbeat_message info = {0};
		onbeat_status status = onbeat_read_timeout(end->listener, ch->payload,
							   NC_SERVICE_NS, &info);
		if (status == ONBEAT_TIMED_OUT)
			continue;
		if (status != ONBEAT_OK) {
			if (status < 0)
				nc_failure(ch, status);
			break;
		}
		nc_note(ch, (uint8_t)info.sequence, info.capture_ns);
		if (ch->nh->logger)
			log_rx(ch->nh->logger, &ch->pdu, (uint64_t)info.arrived_ns,
			       (uint64_t)(info.capture_ns + info.latency_ns));
		call(ch, end);
	}
	return NULL;
}

bool nc_service_wanted(const struct channel *ch)
{
	const struct nc_callback *callback = find(ch->nh->core, ch->sidw.s64);
	return callback && !is_default(callback);
}

int nc_service_start(struct channel *ch)
{
	struct nc_end *end = ch->end;
	if (end->serviced || !end->wants_service)
		return 0;
	if (ch->nh->in_run) {
		/* Refused before the start, which then calls this again. */
		onbeat_status status = onbeat_thread_create(end->context, serve, ch,
							    &end->run_thread);
		end->serviced = status == ONBEAT_OK;
		return 0;
	}
	int failed = pthread_create(&end->thread, NULL, serve, ch);
	end->serviced = failed == 0;
	if (failed)
		ERROR(ch, "no thread for its callback: %s", strerror(failed));
	return -failed;
}

void nc_service_stop(struct channel *ch)
{
	struct nc_end *end = ch->end;
	if (!end->serviced)
		return;
	__atomic_store_n(&end->service_ends, true, __ATOMIC_RELEASE);
	if (end->run_thread)
		onbeat_thread_join(end->run_thread, NULL);
	else
		pthread_join(end->thread, NULL);
	end->serviced = false;
}

/* --- registering ------------------------------------------------------------------------------ */

/* With the lock held: unlocks what was locked, up to `until`; readers enter it, or never again. */
static void unlock_readers(struct nethandler *nh, uint64_t stream_id, const struct channel *until,
			   bool served)
{
	for (struct channel *ch = nh->du_rx_head; ch != until; ch = ch->next) {
		if (ch->sidw.s64 != stream_id || ch->end->wants_service)
			continue;
		ch->end->wants_service = served;
		pthread_mutex_unlock(&ch->use);
	}
}

/* With the lock held: no reader enters an end of the stream any more. False when one is inside. */
static bool claim_readers(struct nethandler *nh, uint64_t stream_id)
{
	for (struct channel *ch = nh->du_rx_head; ch; ch = ch->next) {
		if (ch->sidw.s64 != stream_id || ch->end->wants_service)
			continue;
		if (pthread_mutex_trylock(&ch->use) != 0) {
			unlock_readers(nh, stream_id, ch, false);
			return false;
		}
	}
	unlock_readers(nh, stream_id, NULL, true);
	return true;
}

/* With the lock held. A callback for a stream that is read later is served from then on. */
static int start_readers(struct nethandler *nh, uint64_t stream_id)
{
	int result = 0;
	for (struct channel *ch = nh->du_rx_head; ch && !result; ch = ch->next)
		if (ch->sidw.s64 == stream_id)
			result = nc_service_start(ch);
	return result;
}

static int reg_callback(struct nethandler *nh, struct nc_callback callback)
{
	struct nc_core *core = nh->core;
	struct nc_callback *slot = find(core, callback.stream_id);
	if (!slot && core->callback_count == nh->hmap_sz)
		return -ENOMEM;
	bool serves = !is_default(&callback);
	if (serves && !claim_readers(nh, callback.stream_id))
		return -EBUSY;
	if (!slot)
		slot = &core->callbacks[core->callback_count++];
	*slot = callback;
	return serves ? start_readers(nh, callback.stream_id) : 0;
}

int nh_reg_callback(struct nethandler *nh, uint64_t stream_id, void *priv_data,
		    int (*cb)(void *priv_data, struct avtpdu_cshdr *du))
{
	if (!nh || !cb)
		return -EINVAL;
	pthread_mutex_lock(&nh->core->lock);
	int result = reg_callback(nh, (struct nc_callback){stream_id, priv_data, cb});
	pthread_mutex_unlock(&nh->core->lock);
	return result;
}

/* With the lock held: whether a thread that serves an end, but the caller's, is in a callback. */
static bool in_call(const struct nethandler *nh, const void *priv_data)
{
	const struct channel *ch = nh->du_rx_head;
	while (ch && (ch == serving || ch->end->calling != priv_data))
		ch = ch->next;
	return ch != NULL;
}

void nc_callback_forget(struct nethandler *nh, const void *priv_data)
{
	struct nc_core *core = nh->core;
	pthread_mutex_lock(&core->lock);
	for (size_t i = core->callback_count; i-- > 0;)
		if (core->callbacks[i].priv_data == priv_data)
			core->callbacks[i] = core->callbacks[--core->callback_count];
	while (in_call(nh, priv_data)) {
		struct timespec step = {.tv_nsec = NS_IN_MS};
		pthread_mutex_unlock(&core->lock);
		nc_own(1);
		nanosleep(&step, NULL);
		nc_own(-1);
		pthread_mutex_lock(&core->lock);
	}
	pthread_mutex_unlock(&core->lock);
}

/* --- giving ----------------------------------------------------------------------------------- */

static int give_to(struct channel *ch, struct nc_end *end, const struct avtpdu_cshdr *du)
{
	if (!end || ntohs(du->sdl) != ch->payload_size)
		return -EINVAL;
	struct nc_given *given = malloc(sizeof(*given) + ch->payload_size);
	if (!given)
		return -ENOMEM;
	given->next = NULL;
	given->timestamp = ntohl(du->avtp_timestamp);
	memcpy(given->payload, du + 1, ch->payload_size);
	pthread_mutex_lock(&end->lock);
	bool room = end->given_count < NC_GIVEN_MAX;
	if (room) {
		struct nc_given **at = &end->given;
		while (*at)
			at = &(*at)->next;
		*at = given;
		end->given_count++;
	}
	pthread_mutex_unlock(&end->lock);
	if (room)
		return ch->payload_size;
	free(given);
	return -ENOBUFS;
}

static int give(struct channel *ch, const struct avtpdu_cshdr *du)
{
	__atomic_add_fetch(&ch->busy, 1, __ATOMIC_SEQ_CST);
	int result = give_to(ch, __atomic_load_n(&ch->end, __ATOMIC_SEQ_CST), du);
	nc_end_leave(ch);
	return result;
}

bool nc_given_take(struct channel *ch, struct nc_end *end, void *data, uint32_t *timestamp)
{
	pthread_mutex_lock(&end->lock);
	struct nc_given *given = end->given;
	if (given) {
		end->given = given->next;
		end->given_count--;
	}
	pthread_mutex_unlock(&end->lock);
	if (!given)
		return false;
	*timestamp = given->timestamp;
	memcpy(data, given->payload, ch->payload_size);
	memcpy(ch->payload, given->payload, ch->payload_size);
	free(given);
	return true;
}

/*
 * A full descriptor makes a service wait, but for no longer than its channel is open: a program
 * that does not read any more still closes its channels.
 */
static ssize_t write_payload(int fd, const void *payload, size_t size)
{
	/* For one service at a time: two would both take a descriptor's last room. */
	static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
	struct pollfd at = {.fd = fd, .events = POLLOUT};
	int flags = fcntl(fd, F_GETFL);
	if (!serving || (flags >= 0 && flags & O_NONBLOCK))
		return write(fd, payload, size);
	while (!__atomic_load_n(&serving->end->service_ends, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&writing);
		bool room = poll(&at, 1, 0) > 0;
		ssize_t written = room ? write(fd, payload, size) : 0;
		pthread_mutex_unlock(&writing);
		if (room)
			return written;
		poll(&at, 1, FULL_MS);
	}
	errno = ECANCELED;
	return -1;
}

int nh_std_cb(void *data, struct avtpdu_cshdr *du)
{
	struct cb_priv *cbp = data;
	if (!cbp || !du || cbp->sz <= 0 || cbp->sz > NC_PAYLOAD_MAX)
		return -EINVAL;
	if (cbp->ch)
		return give(cbp->ch, du);
	ssize_t written = write_payload(cbp->fd, du + 1, (size_t)cbp->sz);
	return written < 0 ? -errno : (int)written;
}

int nh_feed_pdu(struct nethandler *nh, struct avtpdu_cshdr *du)
{
	return nh_feed_pdu_ts(nh, du, 0, nh ? tai_get_ns() : 0);
}

int nh_feed_pdu_ts(struct nethandler *nh, struct avtpdu_cshdr *du, uint64_t rx_hw_ns,
		   uint64_t recv_ptp_ns)
{
	if (!nh || !du || du->subtype != AVTP_SUBTYPE_NETCHAN || du->version != 0 || !du->sv)
		return -EINVAL;
	uint64_t stream_id = be64toh(du->stream_id);
	struct nc_callback callback = {0};
	pthread_mutex_lock(&nh->core->lock);
	struct nc_callback *found = find(nh->core, stream_id);
	struct channel *ch = reader(nh, stream_id);
	int result = -EBADFD;
	if (found && !is_default(found))
		callback = *found;
	else if (ch)
		result = give(ch, du);
	pthread_mutex_unlock(&nh->core->lock);
	if (callback.cb)
		result = callback.cb(callback.priv_data, du);
	if (result >= 0 && nh->logger)
		log_rx(nh->logger, du, rx_hw_ns, recv_ptp_ns);
	return result < 0 ? result : 0;
}
