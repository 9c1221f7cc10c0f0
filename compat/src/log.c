/*
 * log.c: the delay log. Threads that send and read put entries into a ring; one thread of the log's
 * own writes them out. So a line costs the path of a message some tens of nanoseconds, and the
 * number of lines is limited by the disk only.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <endian.h>
#include <arpa/inet.h>
#include <stdatomic.h>

#include "internal.h"

#define RING 131072u
#define POLL_NS (20 * NS_IN_MS)

static const char *const messages_header =
	"stream_id,sz,seqnr,avtp_ns,cap_ptp_ns,send_ptp_ns,tx_ns,rx_ns,recv_ptp_ns\n";
static const char *const wakeups_header = "ptp_target,cpu_target,cpu_actual\n";

struct entry {
	/* Of the ring's slot: its position when free, one more when it holds an entry. */
	atomic_uint_fast64_t turn;
	bool wakeup;
	uint8_t seqnr;
	uint16_t size;
	uint32_t avtp;
	uint64_t stream_id;
	uint64_t ns[5];
};

struct logc {
	struct entry *ring;
	atomic_uint_fast64_t head;
	atomic_uint_fast64_t dropped;
	atomic_bool stopped;
	pthread_mutex_t lock;  /* of all below; held by who writes, never on the path of a message */
	uint64_t tail;
	char *name;
	FILE *messages;
	FILE *wakeups;  /* made at the first entry */
	unsigned rotations;
	bool failed;
	pthread_cond_t wake;
	bool ending;
	pthread_t thread;
};

static FILE *start_file(const char *name, const char *header)
{
	FILE *file = fopen(name, "we");
	if (file && fputs(header, file) < 0) {
		fclose(file);
		return NULL;
	}
	return file;
}

static char *wakeups_name(const struct logc *log)
{
	char *name = NULL;
	return asprintf(&name, "%s_d", log->name) < 0 ? NULL : name;
}

static void write_entry(struct logc *log, const struct entry *e)
{
	if (!e->wakeup) {
		if (log->messages)
			fprintf(log->messages,
				"%" PRIu64 ",%u,%u,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
				",%" PRIu64 ",%" PRIu64 "\n",
				e->stream_id, e->size, e->seqnr, e->avtp, e->ns[0], e->ns[1],
				e->ns[2], e->ns[3], e->ns[4]);
		return;
	}
	if (!log->wakeups) {
		char *name = wakeups_name(log);
		log->wakeups = name ? start_file(name, wakeups_header) : NULL;
		free(name);
	}
	if (log->wakeups)
		fprintf(log->wakeups, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", e->ns[0], e->ns[1],
			e->ns[2]);
}

/* Takes what is in the ring, and writes it or not. With the lock held. */
static void drain(struct logc *log, bool keep)
{
	/* No more than was there at first: threads that log on do not hold the caller up. */
	uint64_t end = atomic_load(&log->head);
	for (; log->tail != end; log->tail++) {
		struct entry *e = &log->ring[log->tail % RING];
		if (atomic_load_explicit(&e->turn, memory_order_acquire) != log->tail + 1)
			break;
		if (keep)
			write_entry(log, e);
		atomic_store_explicit(&e->turn, log->tail + RING, memory_order_release);
	}
}

static void *write_all(void *argument)
{
	struct logc *log = argument;
	pthread_mutex_lock(&log->lock);
	while (!log->ending) {
		drain(log, true);
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		ts_add_ns(&until, POLL_NS);
		pthread_cond_timedwait(&log->wake, &log->lock, &until);
	}
	pthread_mutex_unlock(&log->lock);
	return NULL;
}

static bool start_thread(struct logc *log)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&log->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&log->lock, NULL);
	nc_own(1);
	int failed = pthread_create(&log->thread, NULL, write_all, log);
	nc_own(-1);
	return failed == 0;
}

struct logc *log_create(const char *logfile)
{
	if (!logfile || !logfile[0])
		return NULL;
	struct logc *log = calloc(1, sizeof(*log));
	struct entry *ring = calloc(RING, sizeof(*ring));
	char *name = strdup(logfile);
	FILE *messages = start_file(logfile, messages_header);
	if (log && ring && name && messages) {
		/* This touches all of it: no page faults later. */
		for (uint64_t i = 0; i < RING; i++)
			atomic_init(&ring[i].turn, i);
		*log = (struct logc){.ring = ring, .name = name, .messages = messages};
		if (start_thread(log))
			return log;
	}
	nh_debug(NC_ERROR, NULL, "cannot write the log %s: %s", logfile, strerror(errno));
	if (messages)
		fclose(messages);
	free(name);
	free(ring);
	free(log);
	return NULL;
}

static struct entry *claim(struct logc *log, uint64_t *position)
{
	if (!log || atomic_load_explicit(&log->stopped, memory_order_relaxed))
		return NULL;
	uint64_t at = atomic_load_explicit(&log->head, memory_order_relaxed);
	for (;;) {
		struct entry *e = &log->ring[at % RING];
		uint64_t turn = atomic_load_explicit(&e->turn, memory_order_acquire);
		if (turn == at) {
			if (atomic_compare_exchange_weak(&log->head, &at, at + 1)) {
				*position = at;
				return e;
			}
		} else if (turn < at) {
			atomic_fetch_add(&log->dropped, 1);
			return NULL;
		} else {
			at = atomic_load_explicit(&log->head, memory_order_relaxed);
		}
	}
}

static void publish(struct entry *e, uint64_t position)
{
	atomic_store_explicit(&e->turn, position + 1, memory_order_release);
}

static void put_message(struct logc *log, const struct avtpdu_cshdr *du, const uint64_t ns[5])
{
	uint64_t position;
	struct entry *e = claim(log, &position);
	if (!e)
		return;
	e->wakeup = false;
	e->seqnr = du->seqnr;
	e->size = ntohs(du->sdl);
	e->avtp = ntohl(du->avtp_timestamp);
	e->stream_id = be64toh(du->stream_id);
	memcpy(e->ns, ns, sizeof(e->ns));
	publish(e, position);
}

void log_tx(struct logc *logc, struct avtpdu_cshdr *du, uint64_t cap_ptp_ns, uint64_t send_ptp_ns,
	    uint64_t tx_ns)
{
	put_message(logc, du, (uint64_t[5]){cap_ptp_ns, send_ptp_ns, tx_ns, 0, 0});
}

void log_rx(struct logc *logc, struct avtpdu_cshdr *du, uint64_t rx_ns, uint64_t recv_ptp_ns)
{
	put_message(logc, du, (uint64_t[5]){0, 0, 0, rx_ns, recv_ptp_ns});
}

void log_wakeup_delay(struct logc *logc, uint64_t ptp_target_ns, uint64_t cpu_target_ns,
		      uint64_t cpu_actual_ns)
{
	uint64_t position;
	struct entry *e = claim(logc, &position);
	if (!e)
		return;
	e->wakeup = true;
	e->ns[0] = ptp_target_ns;
	e->ns[1] = cpu_target_ns;
	e->ns[2] = cpu_actual_ns;
	publish(e, position);
}

static void check(struct logc *log, FILE *file)
{
	if (file && (fflush(file) != 0 || ferror(file)) && !log->failed) {
		log->failed = true;
		nh_debug(NC_ERROR, NULL, "the log %s is not complete: %s", log->name,
			 strerror(errno));
	}
}

static void close_files(struct logc *log)
{
	check(log, log->messages);
	check(log, log->wakeups);
	if (log->messages)
		fclose(log->messages);
	if (log->wakeups)
		fclose(log->wakeups);
	log->messages = NULL;
	log->wakeups = NULL;
}

void log_reset(struct logc *logc)
{
	if (!logc)
		return;
	pthread_mutex_lock(&logc->lock);
	drain(logc, false);
	close_files(logc);
	char *name = wakeups_name(logc);
	if (name)
		remove(name);
	free(name);
	if (!atomic_load(&logc->stopped))
		logc->messages = start_file(logc->name, messages_header);
	pthread_mutex_unlock(&logc->lock);
}

static void rename_to(const char *name, unsigned number)
{
	char *to = NULL;
	if (name && asprintf(&to, "%s-%u", name, number) >= 0)
		rename(name, to);
	free(to);
}

void log_flush_and_rotate(struct logc *logc)
{
	if (!logc)
		return;
	pthread_mutex_lock(&logc->lock);
	drain(logc, true);
	bool wakeups = logc->wakeups != NULL;
	close_files(logc);
	rename_to(logc->name, logc->rotations);
	if (wakeups) {
		char *name = wakeups_name(logc);
		rename_to(name, logc->rotations);
		free(name);
	}
	logc->rotations++;
	if (!atomic_load(&logc->stopped))
		logc->messages = start_file(logc->name, messages_header);
	pthread_mutex_unlock(&logc->lock);
}

void log_stop(struct logc *logc)
{
	if (!logc || atomic_exchange(&logc->stopped, true))
		return;
	pthread_mutex_lock(&logc->lock);
	logc->ending = true;
	pthread_cond_signal(&logc->wake);
	pthread_mutex_unlock(&logc->lock);
	pthread_join(logc->thread, NULL);
	drain(logc, true);
	close_files(logc);
	uint64_t dropped = atomic_load(&logc->dropped);
	if (dropped)
		nh_debug(NC_WARN, NULL, "the log %s lacks %" PRIu64 " lines: the disk was too slow",
			 logc->name, dropped);
}

void log_close(struct logc *logc)
{
	if (!logc)
		return;
	log_stop(logc);
	pthread_cond_destroy(&logc->wake);
	pthread_mutex_destroy(&logc->lock);
	free(logc->ring);
	free(logc->name);
	free(logc);
}

void log_destroy(struct logc *logc)
{
	log_close(logc);
}
