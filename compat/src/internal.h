/*
 * internal.h: what the compatibility library's files share. It stands on onbeat.h alone.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

/* Here pthread_create() is that of the system. */
#define NETCHAN_PLAIN_THREADS

#include <logger.h>
#include <netchan_standalone.h>
#include <onbeat.h>

#include "timedc_hooks.h"

/* Of the object that `onbeat run --verify` has programs start with; else there is none. Between 1
 * and -1 the library uses threads or time of the machine for itself, which no result shows. */
extern void onbeat_notice_own(int change) __attribute__((weak));
static inline void nc_own(int change)
{
	if (onbeat_notice_own)
		onbeat_notice_own(change);
}

/* Messages given by nh_feed_pdu() that wait to be read, at most, for each end. */
#define NC_GIVEN_MAX 64

/* How long a service thread waits before it looks whether it shall end. */
#define NC_SERVICE_NS (100 * NS_IN_MS)

struct nc_given {
	struct nc_given *next;
	uint32_t timestamp;
	unsigned char payload[];
};

/* An open end. On an interface it has a context of its own: so it can be stopped alone, and made
 * when others are in use already. In a run the context is the program's. */
struct nc_end {
	onbeat *context;
	onbeat_talker *talker;
	onbeat_listener *listener;
	bool told;  /* the first failure was reported */
	bool own_host;  /* the program talks on the stream: what leaves is read, too */

	pthread_mutex_t lock;  /* of what was given */
	struct nc_given *given;
	unsigned given_count;

	bool wants_service;  /* a callback gets its messages; with core->lock and, once open, use */
	bool serviced;       /* by one of the threads below; with core->lock, while it is listed */
	bool service_ends;
	const void *calling; /* the data of the callback that its thread is in; with core->lock */
	pthread_t thread;
	onbeat_thread *run_thread;

	struct nc_pipe *pipe;
};

struct nc_callback {
	uint64_t stream_id;
	void *priv_data;
	int (*cb)(void *priv_data, struct avtpdu_cshdr *du);
};

struct nc_core {
	struct nethandler *next;  /* all handlers of the program */
	pthread_mutex_t lock;     /* of the lists of channels and of the callbacks */
	bool abandoned;           /* a thread is still in a channel that was closed: free nothing */
	size_t callback_count;
	struct nc_callback callbacks[];
};

/* --- backend.c: where the program runs, and its clock ----------------------------------------- */

bool nc_in_run(void);
/* Finds out that the handler's interface can be used, or joins the run. False, and said why. */
bool nc_backend_enter(struct nethandler *nh);
void nc_backend_leave(struct nethandler *nh);
/* The first handler of the program's; follow core->next, with nc_backend_lock() held. */
struct nethandler *nc_backend_handlers(void);
void nc_backend_lock(void);
void nc_backend_unlock(void);
/* In a run: ends set-up, at the first call that may wait. False when the run is over. */
bool nc_backend_begin(void);
/* Whether it has been ended. */
bool nc_backend_has_begun(void);
onbeat *nc_backend_context(void);
/* Whether tasks of Timed C share the ends. */
bool nc_backend_is_timedc(void);
/* Sleeps until the clock reads `until_ns`, or ONBEAT_TIMED_OUT at timedc_wait_limit(). */
onbeat_status nc_sleep(onbeat *context, int64_t until_ns, int64_t *woke_ns);
/* Opens `count` channels on the handler's interface. */
onbeat_status nc_open_interface(const struct nethandler *nh, const onbeat_channel *channels,
				size_t count, onbeat **out);
/* A negative errno for what onbeat returned; ends a program that continues long after its run. */
int nc_failure(struct channel *ch, onbeat_status status);

/* --- thread.c: threads that programs create --------------------------------------------------- */

/* Lets those begin that wait for the run: they take part in it, or if it is over they do not. */
void nc_threads_begin(onbeat *context);
/* Whether there are any that the run knows. */
bool nc_threads_are_there(void);

/* --- nic.c ------------------------------------------------------------------------------------ */

bool nic_exists(const char *name);
bool nic_is_loopback(const char *name);
unsigned nic_speed_mbps(const char *name);  /* 1000 when it does not say */
bool nic_has_ptp_clock(const char *name);

/* --- manifest.c ------------------------------------------------------------------------------- */

/* Whether the rows are right, each and together; says what is not. `array` is their name in C. */
bool nc_manifest_valid(const char *array, const struct channel_attrs *rows, int count);
/* Whether an end for `attrs` may be added to what the program has open on the interface. `own`
 * becomes whether that has the stream's other end: a talker, or a reader that does not know of
 * one. */
bool nc_admit(struct nethandler *nh, const struct channel_attrs *attrs, bool tx, bool *own);

/* --- end.c ------------------------------------------------------------------------------------ */

/* A channel of the handler without an end. Allocates. */
struct channel *nc_chan_new(struct nethandler *nh, const struct channel_attrs *attrs);
/* Opens its end and lists it. False, and said why. */
bool nc_end_open(struct nethandler *nh, struct channel *ch, bool tx);
/* Stops and closes its end, and takes it off the list. False, and said why, when a thread does not
 * leave it: what it uses must then not be freed. */
bool nc_end_close(struct channel *ch);
/* Frees a channel without an end. */
void nc_chan_free(struct channel *ch);

enum nc_side { NC_TX, NC_RX, NC_EITHER };
/* Before and after each call with an end: 0 and the end, or a negative errno. */
int nc_end_enter(struct channel *ch, enum nc_side side, struct nc_end **end);
void nc_end_leave(struct channel *ch);
/* Whether bandwidth is reserved, where the end asked for that. */
bool nc_end_is_reserved(struct channel *ch);
/* The same with the channel for oneself, as its talker or listener and its payload need. */
int nc_end_use(struct channel *ch, enum nc_side side, struct nc_end **end);
void nc_end_done(struct channel *ch);
/* The channel for oneself: 0 or a negative errno. To be unlocked. */
int nc_chan_lock(struct channel *ch);
/* Waits in steps of 1 ms, at most a second, until `*value` is 0: whether it is. */
bool nc_await_zero(const unsigned *value);

/* --- standalone.c ----------------------------------------------------------------------------- */

/* chan_create_standalone() for a manifest that is called `array` in C. */
struct channel *nc_standalone(const char *array, const char *name, bool tx,
			      struct channel_attrs *rows, int count);
/* Whether the program wants the processors' idle states left alone. */
bool nc_keeps_cstate(void);
/* The program ends: its log is completed. */
void nc_standalone_end(void);

/* --- callback.c ------------------------------------------------------------------------------- */

/* With core->lock held: whether there is a callback for its messages. */
bool nc_service_wanted(const struct channel *ch);
/* With core->lock held: makes the thread, if one is wanted and not there: 0 or a negative errno. */
int nc_service_start(struct channel *ch);
/* The end is off the list, so that nothing starts it again. */
void nc_service_stop(struct channel *ch);
/* The channel whose callback the calling thread is in, or NULL. */
struct channel *nc_serving(void);
/* Forgets what was registered with this data, which may be freed then: no other thread that serves
 * an end is in its callback any more. */
void nc_callback_forget(struct nethandler *nh, const void *priv_data);
/* Takes a given message: false when there is none. */
bool nc_given_take(struct channel *ch, struct nc_end *end, void *data, uint32_t *timestamp);

/* --- pipe.c ----------------------------------------------------------------------------------- */

/* A descriptor for what the end sends or receives, or -1. */
int nc_pipe_open(struct channel *ch);
/* Sends what was written, for at most a second. */
void nc_pipe_drain(struct channel *ch);
/* The end is stopped. */
void nc_pipe_close(struct channel *ch);

/* --- channel.c -------------------------------------------------------------------------------- */

/* Notes in the channel's header what was sent or read. */
void nc_note(struct channel *ch, uint8_t sequence, int64_t capture_ns);
/* The instant near `now` with these lower 32 bits. */
int64_t nc_rebuild(uint32_t timestamp, int64_t now_ns);
