/*
 * onbeat.h: network channels with a bounded delay, for C.
 *
 * Generated from crates/capi/src by `cargo test -p onbeat-capi --test header`; do not edit.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Life of a program:
 *   onbeat_open, onbeat_talker_open / onbeat_listener_open for each channel end, onbeat_start;
 *   then write, read and sleep until a call returns ONBEAT_STOPPED; then onbeat_close.
 *
 * All times are nanoseconds of the network clock as this host reads it; their epoch is the common
 * start of the run. Every pointer is NULL, which is refused unless it is said to be allowed, or
 * valid for what the call does with it. A program never sees in which engine it runs.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * The message came later than capture + D.
 */
#define ONBEAT_LATE 1

/**
 * The talker's clock was not synchronised.
 */
#define ONBEAT_UNCERTAIN 4

/**
 * What a call returns. Zero and above: it did what its description says. Below zero: it did
 * nothing, and `onbeat_last_error` says why. Numbers are never used again for something else.
 */
typedef enum onbeat_status {
    /**
     * Done.
     */
    ONBEAT_OK = 0,
    /**
     * The run is over: clean up and exit.
     */
    ONBEAT_STOPPED = 1,
    /**
     * There is no message.
     */
    ONBEAT_EMPTY = 2,
    /**
     * No message came in time.
     */
    ONBEAT_TIMED_OUT = 3,
    /**
     * The channel's declared rate does not allow a message yet.
     */
    ONBEAT_RATE_EXCEEDED = 4,
    /**
     * A pointer is NULL, or a text is not UTF-8.
     */
    ONBEAT_E_ARGUMENT = -1,
    /**
     * There is no fabric, or it is gone.
     */
    ONBEAT_E_FABRIC = -2,
    /**
     * The description does not allow it: an unknown channel, another size, another host.
     */
    ONBEAT_E_REFUSED = -3,
    /**
     * `onbeat_start` has not been called.
     */
    ONBEAT_E_NOT_STARTED = -4,
    /**
     * The calling thread is not the one that called `onbeat_open`, nor one that
     * `onbeat_thread_create` made.
     */
    ONBEAT_E_THREAD = -5,
    /**
     * A defect of the library itself; please report it.
     */
    ONBEAT_E_INTERNAL = -6,
    /**
     * The interface cannot be used, is down, or its queue is full.
     */
    ONBEAT_E_NETWORK = -7,
} onbeat_status;

/**
 * A program's membership in a run. Any of its threads may use it.
 */
typedef struct onbeat onbeat;

/**
 * A reading end of a channel. Used by one thread at a time.
 */
typedef struct onbeat_listener onbeat_listener;

/**
 * The writing end of a channel. Used by one thread at a time.
 */
typedef struct onbeat_talker onbeat_talker;

/**
 * A thread that takes part in a run.
 */
typedef struct onbeat_thread onbeat_thread;

/**
 * What is known of a message that was read.
 */
typedef struct onbeat_message {
    /**
     * When the value was captured, by the talker's clock.
     */
    int64_t capture_ns;
    /**
     * Receipt minus capture.
     */
    int64_t latency_ns;
    /**
     * After `onbeat_read_wait`: target minus wake-up; negative when it woke after the target.
     */
    int64_t wakeup_error_ns;
    /**
     * Number of the message, from 0.
     */
    uint64_t sequence;
    /**
     * Messages lost between the one before and this one.
     */
    uint32_t gap;
    /**
     * `ONBEAT_LATE` and `ONBEAT_UNCERTAIN`.
     */
    uint32_t flags;
} onbeat_message;

/**
 * The body of a thread.
 */
typedef void *(*onbeat_thread_body)(void *argument);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Why the last call on this thread that returned a negative status failed: a text of one line,
 * valid until the next call of this library on this thread. Never NULL.
 */
const char *onbeat_last_error(void);

/**
 * Opens the writing end of the channel `name`, whose messages the program believes to have
 * `size` octets. `ONBEAT_E_REFUSED` when the description says otherwise. Allocates.
 */
enum onbeat_status onbeat_talker_open(struct onbeat *context,
                                      const char *name,
                                      size_t size,
                                      struct onbeat_talker **out);

/**
 * Closes a writing end and frees it. NULL is allowed.
 */
void onbeat_talker_close(struct onbeat_talker *talker);

/**
 * Sends the message at `message`. Blocks only while the channel's declared rate is exceeded.
 * `capture_ns`, if not NULL, gets the capture time. Allocates nothing.
 */
enum onbeat_status onbeat_write(struct onbeat_talker *talker,
                                const void *message,
                                int64_t *capture_ns);

/**
 * Like `onbeat_write`, but returns `ONBEAT_RATE_EXCEEDED` instead of blocking; `capture_ns` then
 * gets the instant from which on a message is allowed.
 */
enum onbeat_status onbeat_try_write(struct onbeat_talker *talker,
                                    const void *message,
                                    int64_t *capture_ns);

/**
 * Sends the message, then waits until its capture time + D, the instant at which the readers that
 * wait with `onbeat_read_wait` continue as well. `wakeup_error_ns`, if not NULL, gets target minus
 * wake-up: negative when it woke after the target. Allocates nothing.
 */
enum onbeat_status onbeat_write_wait(struct onbeat_talker *talker,
                                     const void *message,
                                     int64_t *wakeup_error_ns);

/**
 * Opens a reading end of the channel `name`, whose messages the program believes to have `size`
 * octets. `ONBEAT_E_REFUSED` when the description says otherwise. Allocates.
 */
enum onbeat_status onbeat_listener_open(struct onbeat *context,
                                        const char *name,
                                        size_t size,
                                        struct onbeat_listener **out);

/**
 * Closes a reading end and frees it. NULL is allowed.
 */
void onbeat_listener_close(struct onbeat_listener *listener);

/**
 * Waits for a message. `info`, if not NULL, gets what is known of it. Allocates nothing.
 */
enum onbeat_status onbeat_read(struct onbeat_listener *listener,
                               void *message,
                               struct onbeat_message *info);

/**
 * Waits for a message, then until its capture time + D, the instant at which the talker that
 * waits with `onbeat_write_wait` continues as well. At once when that has passed: the message is
 * late. Allocates nothing.
 */
enum onbeat_status onbeat_read_wait(struct onbeat_listener *listener,
                                    void *message,
                                    struct onbeat_message *info);

/**
 * Takes a message if there is one, else returns `ONBEAT_EMPTY` and leaves `message` as it is.
 * Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_try_read(struct onbeat_listener *listener,
                                   void *message,
                                   struct onbeat_message *info);

/**
 * Waits for a message for at most `timeout_ns`; returns `ONBEAT_TIMED_OUT` when none came.
 * Allocates nothing.
 */
enum onbeat_status onbeat_read_timeout(struct onbeat_listener *listener,
                                       void *message,
                                       int64_t timeout_ns,
                                       struct onbeat_message *info);

/**
 * Joins the run that the environment names; `onbeat run` sets it. The calling thread becomes the
 * program's main thread, and the one that opens channels.
 *
 * Blocks until the fabric answers. Allocates.
 */
enum onbeat_status onbeat_open(struct onbeat **out);

/**
 * Ends set-up. Waits until every program of the system has come this far; returns at the common
 * start, which is the epoch of the network clock. After it, reading, writing and sleeping
 * allocate nothing.
 */
enum onbeat_status onbeat_start(struct onbeat *context);

/**
 * Leaves the run and frees `context`; its channel ends must be closed before. NULL is allowed.
 */
void onbeat_close(struct onbeat *context);

/**
 * What this host's copy of the network clock reads. Never blocks; in virtual time it does not go
 * on until the program waits for something, so do not wait for it in a loop.
 */
enum onbeat_status onbeat_now(struct onbeat *context, int64_t *now_ns);

/**
 * Sleeps until this host's copy of the network clock reads `until_ns` or later; at once when it
 * does already. `woke_ns`, if not NULL, gets what it read then.
 */
enum onbeat_status onbeat_sleep_until(struct onbeat *context, int64_t until_ns, int64_t *woke_ns);

/**
 * Declares that the work since the last call takes `work_ns`. In virtual time, where work takes no
 * time by itself, that time passes now; in real time nothing happens.
 */
enum onbeat_status onbeat_work(struct onbeat *context, int64_t work_ns);

/**
 * Creates a thread that takes part in the run; only after `onbeat_start`. Threads of a program
 * wait for each other through channels, sleeps and `onbeat_thread_join` only: virtual time stands
 * still while one waits for another by other means. The body ends by returning; when the run is
 * over before it could begin, it is not called, and its result is NULL.
 */
enum onbeat_status onbeat_thread_create(struct onbeat *context,
                                        onbeat_thread_body body,
                                        void *argument,
                                        struct onbeat_thread **out);

/**
 * Waits until a thread has ended, and frees it. `result`, if not NULL, gets what its body
 * returned. The thread is freed whatever is returned, unless it is NULL.
 */
enum onbeat_status onbeat_thread_join(struct onbeat_thread *thread, void **result);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
