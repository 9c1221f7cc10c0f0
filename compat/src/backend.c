/*
 * backend.c: where the program runs: in a run, if `onbeat run` started it, or on interfaces; and
 * its clock. All instants of the library are of one clock, so that none is of another epoch.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

/* Calls after the end of the run before a program is ended that does not look at results. */
#define CALLS_AFTER_END 1000

static struct {
	pthread_mutex_t lock;
	/* In a run the program's membership; else the first interface, for its clock: that one
	 * stays open until the program ends, because tai_get_ns() and timers use it at any time. */
	onbeat *context;
	struct nethandler *handlers;
	bool begun;
	bool begin_failed;
	bool clock_told;
	bool timedc;
	unsigned calls_after_end;
} backend = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool in_run;
static pthread_once_t run_once = PTHREAD_ONCE_INIT;

static void look_for_run(void)
{
	/* ONBEAT_FABRIC is the old name. */
	in_run = secure_getenv("ONBEAT_COORDINATOR") || secure_getenv("ONBEAT_FABRIC");
}

bool nc_in_run(void)
{
	pthread_once(&run_once, look_for_run);
	return in_run;
}

void nc_backend_lock(void)
{
	pthread_mutex_lock(&backend.lock);
}

void nc_backend_unlock(void)
{
	pthread_mutex_unlock(&backend.lock);
}

struct nethandler *nc_backend_handlers(void)
{
	return backend.handlers;
}

onbeat *nc_backend_context(void)
{
	return __atomic_load_n(&backend.context, __ATOMIC_ACQUIRE);
}

onbeat_status nc_open_interface(const struct nethandler *nh, const onbeat_channel *channels,
				size_t count, onbeat **out)
{
	onbeat_interface interface = {
		.name = nh->ifname,
		.transport = ONBEAT_PACKET,
		.flags = (nh->logger ? ONBEAT_TIMESTAMPS : 0) | (nh->ftrace ? ONBEAT_TRACE : 0) |
			 (nh->use_srp ? ONBEAT_RESERVE : 0) |
			 /* The clock's context, without channels, stays open. */
			 (nc_keeps_cstate() || count == 0 ? ONBEAT_NO_CPU_LATENCY : 0),
		.break_ns = nh->ftrace_break_us > 0 ? nh->ftrace_break_us * NS_IN_US : 0,
	};
	for (int i = 0; i < 3; i++)
		interface.socket_priority[i] = (uint32_t)nh->tx_sock_prio[i];
	return onbeat_open_interface(&interface, channels, count, out);
}

/* With the lock held. */
static bool enter_run(void)
{
	if (backend.context)
		return true;
	onbeat *context = NULL;
	if (onbeat_open(&context) == ONBEAT_OK) {
		__atomic_store_n(&backend.context, context, __ATOMIC_RELEASE);
		return true;
	}
	nh_debug(NC_ERROR, NULL, "cannot join the run: %s", onbeat_last_error());
	return false;
}

static bool enter_interface(struct nethandler *nh)
{
	if (!nic_exists(nh->ifname)) {
		nh_debug(NC_ERROR, NULL, "there is no network interface \"%s\"", nh->ifname);
		return false;
	}
	nh->link_speed = nic_speed_mbps(nh->ifname);
	onbeat *context = NULL;
	if (nc_open_interface(nh, NULL, 0, &context) != ONBEAT_OK) {
		nh_debug(NC_ERROR, NULL, "cannot use %s: %s", nh->ifname, onbeat_last_error());
		return false;
	}
	if (!backend.clock_told && !nic_has_ptp_clock(nh->ifname)) {
		backend.clock_told = true;
		nh_debug(NC_WARN, NULL,
			 "%s has no PTP clock: the network clock is this system's CLOCK_TAI",
			 nh->ifname);
	}
	if (backend.context)
		onbeat_close(context);
	else
		__atomic_store_n(&backend.context, context, __ATOMIC_RELEASE);
	return true;
}

bool nc_backend_enter(struct nethandler *nh)
{
	nc_backend_lock();
	bool entered = nc_in_run() ? enter_run() : enter_interface(nh);
	if (entered) {
		nh->core->next = backend.handlers;
		backend.handlers = nh;
	}
	nc_backend_unlock();
	return entered;
}

void nc_backend_leave(struct nethandler *nh)
{
	nc_backend_lock();
	struct nethandler **at = &backend.handlers;
	while (*at != nh)
		at = &(*at)->core->next;
	*at = nh->core->next;
	/* Threads that are in a channel, or sleep, use it. */
	if (nc_in_run() && !backend.handlers && !nh->core->abandoned && !backend.timedc &&
	    !nc_threads_are_there())
		onbeat_close(__atomic_exchange_n(&backend.context, NULL, __ATOMIC_ACQ_REL));
	nc_backend_unlock();
}

/* The threads that could not be made during set-up. With the lock held. */
static void start_services(void)
{
	for (struct nethandler *nh = backend.handlers; nh; nh = nh->core->next) {
		pthread_mutex_lock(&nh->core->lock);
		for (struct channel *ch = nh->du_rx_head; ch; ch = ch->next)
			nc_service_start(ch);
		pthread_mutex_unlock(&nh->core->lock);
	}
}

bool nc_backend_has_begun(void)
{
	return __atomic_load_n(&backend.begun, __ATOMIC_ACQUIRE);
}

bool nc_backend_begin(void)
{
	if (!nc_in_run() || __atomic_load_n(&backend.begun, __ATOMIC_ACQUIRE))
		return true;
	nc_backend_lock();
	if (!backend.begun && !backend.begin_failed && backend.context) {
		onbeat_status status = onbeat_start(backend.context);
		backend.begin_failed = status != ONBEAT_OK;
		if (status < 0)
			nh_debug(NC_ERROR, NULL, "cannot start: %s", onbeat_last_error());
		if (status == ONBEAT_OK) {
			__atomic_store_n(&backend.begun, true, __ATOMIC_RELEASE);
			start_services();
		}
		nc_threads_begin(backend.context);
	}
	bool begun = backend.begun;
	nc_backend_unlock();
	return begun;
}

__attribute__((weak)) int64_t timedc_wait_limit(void)
{
	return INT64_MAX;
}

onbeat_status nc_sleep(onbeat *context, int64_t until_ns, int64_t *woke_ns)
{
	int64_t limit = timedc_wait_limit();
	if (until_ns <= limit)
		return onbeat_sleep_until(context, until_ns, woke_ns);
	onbeat_status status = onbeat_sleep_until(context, limit, woke_ns);
	return status == ONBEAT_OK ? ONBEAT_TIMED_OUT : status;
}

onbeat *nc_timedc_context(void)
{
	nc_backend_lock();
	if (!backend.timedc)
		atexit(nc_standalone_end);
	__atomic_store_n(&backend.timedc, true, __ATOMIC_RELEASE);
	onbeat *context = nc_in_run() && !enter_run() ? NULL : backend.context;
	nc_backend_unlock();
	return context;
}

bool nc_backend_is_timedc(void)
{
	return __atomic_load_n(&backend.timedc, __ATOMIC_ACQUIRE);
}

bool nc_timedc_begin(void)
{
	return nc_backend_begin();
}

/*
 * Many programs of the original library read in an endless loop and look at no result: on a network
 * nothing ever ends. A run does, so such a program is ended here.
 */
static void count_call_after_end(void)
{
	if (__atomic_add_fetch(&backend.calls_after_end, 1, __ATOMIC_RELAXED) < CALLS_AFTER_END)
		return;
	nh_debug(NC_WARN, NULL, "the run is over and the program goes on: ending it");
	exit(EXIT_SUCCESS);
}

int nc_failure(struct channel *ch, onbeat_status status)
{
	if (status == ONBEAT_TIMED_OUT)
		return -ETIMEDOUT;
	if (status == ONBEAT_STOPPED) {
		bool stopped = ch && __atomic_load_n(&ch->stopping, __ATOMIC_ACQUIRE);
		if (nc_in_run() && !stopped)
			count_call_after_end();
		return -ECANCELED;
	}
	if (status == ONBEAT_LINK_DOWN)
		return -ENETDOWN;
	/* The caller is in the end, which may just be closed. */
	struct nc_end *end = ch ? __atomic_load_n(&ch->end, __ATOMIC_SEQ_CST) : NULL;
	if (end && !__atomic_exchange_n(&end->told, true, __ATOMIC_RELAXED)) {
		ERROR(ch, "%s", onbeat_last_error());
	}
	return -EIO;
}

uint64_t tai_get_ns(void)
{
	if (nc_in_run() && !__atomic_load_n(&backend.begun, __ATOMIC_ACQUIRE))
		return 0;
	onbeat *context = nc_backend_context();
	int64_t now = 0;
	if (context && onbeat_now(context, &now) == ONBEAT_OK)
		return (uint64_t)now;
	struct timespec ts;
	if (nc_in_run())
		return 0;
	clock_gettime(CLOCK_TAI, &ts);
	return (uint64_t)ts.tv_sec * NS_IN_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t real_get_ns(void)
{
	struct timespec ts;
	if (nc_in_run())
		return tai_get_ns();
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_IN_SEC + (uint64_t)ts.tv_nsec;
}

uint32_t tai_to_avtp_ns(uint64_t tai_ns)
{
	return (uint32_t)tai_ns;
}
