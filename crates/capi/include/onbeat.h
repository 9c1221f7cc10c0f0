/*
 * onbeat.h: network channels with a bounded delay, for C.
 *
 * @generated from crates/capi/src by `cargo test -p onbeat-capi --test header`; do not edit.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Life of a program:
 *   onbeat_open, onbeat_talker_open / onbeat_listener_open for each endpoint, onbeat_start;
 *   then write, read and sleep until a call returns ONBEAT_STOPPED; then onbeat_close.
 * Outside of `onbeat run`, onbeat_open uses the interface of the environment variable
 * ONBEAT_INTERFACE and the channel table of its host, which ONBEAT_SYSTEM names (`onbeat plan
 * --deploy` writes it; ONBEAT_TRANSPORT: packet, xdp, udp4, udp6). With onbeat_open_interface a
 * program passes all of this itself.
 *
 * All times are nanoseconds of the network clock as this host reads it; their epoch is the common
 * start of the run. On an interface of the environment it is the next full second, on one that a
 * program opens it is `epoch_ns`. Every pointer is valid for the call or NULL. A call refuses NULL
 * unless its description allows it. Pointers for results (a time, counters) may always be NULL.
 * Later versions keep functions, numbers and the layout of structures; structures may get fields
 * at their ends. A call without a size reads and writes the fields of version 0.1. One that is told
 * the size of the program's structure reads and writes no more than that. Fields that the program
 * does not know are left out or count as 0; those unknown to the library are 0 and must be 0.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * A version as one number that compares as versions do, also in `#if`.
 */
#define ONBEAT_VERSION_NUMBER(major, minor, patch) ((major) * 65536u + (minor) * 256u + (patch))

/**
 * The header's version; `onbeat_version` says the library's.
 */
#define ONBEAT_VERSION ONBEAT_VERSION_NUMBER(0, 1, 0)

/**
 * Incremented by changes that break programs.
 */
#define ONBEAT_VERSION_MAJOR 0

/**
 * Incremented by additions.
 */
#define ONBEAT_VERSION_MINOR 1

/**
 * Incremented by fixes.
 */
#define ONBEAT_VERSION_PATCH 0

/**
 * The header's version as a text; `onbeat_version_text` says the library's.
 */
#define ONBEAT_VERSION_TEXT "0.1.0"

/**
 * Whether the header is of version x.y.z or a later one.
 */
#define ONBEAT_VERSION_AT_LEAST(x, y, z) (ONBEAT_VERSION >= ONBEAT_VERSION_NUMBER(x, y, z))

#ifndef __cplusplus
/**
 * What C programs call an `onbeat_context`; in C++ `onbeat` is the namespace of onbeat.hpp.
 */
typedef struct onbeat_context onbeat;
#endif

/**
 * The former name of `ONBEAT_E_COORDINATOR`.
 */
#define ONBEAT_E_FABRIC ONBEAT_E_COORDINATOR

/**
 * The message came later than capture + D.
 */
#define ONBEAT_LATE 1

/**
 * The talker's clock was not synchronised.
 */
#define ONBEAT_UNCERTAIN 4

/**
 * The last message again, not a new one.
 */
#define ONBEAT_REPEATED 64

/**
 * Frames carry no 802.1Q tag of ours: a VLAN interface adds it, or none is wanted.
 */
#define ONBEAT_UNTAGGED 1

/**
 * A blocking read polls the driver for a short time first.
 */
#define ONBEAT_BUSY_POLL 2

/**
 * Takes receive timestamps of the hardware or kernel: `arrived_ns`.
 */
#define ONBEAT_TIMESTAMPS 4

/**
 * Writes markers into the kernel's trace.
 */
#define ONBEAT_TRACE 8

/**
 * Readers sleep until shortly before the expected arrival, then poll, for a part of a CPU.
 */
#define ONBEAT_FOLLOW_SCHEDULE 16

/**
 * Lets the kernel launch the frames of `onbeat_write_at` (SO_TXTIME).
 */
#define ONBEAT_LAUNCH_TIME 32

/**
 * Reserves bandwidth for each channel by SRP: opening an endpoint asks the reservation service of
 * the interface (`onbeat srp serve`), or mrpd; a talker's writes wait while nothing is reserved;
 * VLAN and priority are those of the network. Transports packet and xdp, tagged frames.
 */
#define ONBEAT_RESERVE 64

/**
 * Does not lock the program's memory. Otherwise `onbeat_precautions` says how much is locked.
 */
#define ONBEAT_NO_MEMORY_LOCK 128

/**
 * Leaves the processors' idle states as they are. Otherwise the program holds
 * `/dev/cpu_dma_latency` at 0 while it has an interface open, if it may.
 */
#define ONBEAT_NO_CPU_LATENCY 256

/**
 * Frames carry a counter and a CRC of 32 bits behind the message.
 */
#define ONBEAT_CRC 256

/**
 * Frames carry a counter and a tag of 128 bits behind the message, by a key that both have.
 */
#define ONBEAT_AUTHENTICATED 512

/**
 * The channel's talker is on this host, perhaps in this program: listeners that are opened here
 * receive what leaves by the interface as well as what comes. Not with transport xdp.
 */
#define ONBEAT_OWN_HOST 1024

/**
 * A message of the channel's talker has come.
 */
#define ONBEAT_MATCHED 1

/**
 * No message has come for longer than the endpoint's deadline.
 */
#define ONBEAT_DEADLINE_MISSED 2

/**
 * The talker's clock, by its last message, or this host's is not known to be synchronised.
 */
#define ONBEAT_OUT_OF_SYNC 4

/**
 * Only in `changed`: the talker was started again, or another one has taken its place.
 */
#define ONBEAT_RESTARTED 8

/**
 * Only in `changed`: messages of a second talker were rejected; `onbeat stat` names it.
 */
#define ONBEAT_SECOND_TALKER 16

/**
 * The memory that the program had when it opened its interface, or in a run at the start, is
 * locked.
 */
#define ONBEAT_MEMORY_LOCKED 1

/**
 * Memory that the program gets from now on is locked as well.
 */
#define ONBEAT_LATER_MEMORY_LOCKED 2

/**
 * The program holds `/dev/cpu_dma_latency` at 0, so that no processor is in a deep idle state.
 */
#define ONBEAT_CPU_LATENCY_HELD 4

/**
 * Result of a call. Zero or more means success. Below zero the call did nothing, and
 * `onbeat_last_error` says why. Numbers are never reused.
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
     * No listener is ready: nothing is reserved for the message.
     */
    ONBEAT_NOT_RESERVED = 5,
    /**
     * The interface is down or not there: the message was not sent, and counts as not written.
     */
    ONBEAT_LINK_DOWN = 6,
    /**
     * An argument is not valid: a pointer is NULL, a text is not UTF-8, a flag is not known.
     */
    ONBEAT_E_ARGUMENT = -1,
    /**
     * There is no run coordinator, or it is gone.
     */
    ONBEAT_E_COORDINATOR = -2,
    /**
     * The description does not allow it: an unknown channel, another size, another host.
     */
    ONBEAT_E_REFUSED = -3,
    /**
     * `onbeat_start` has not been called.
     */
    ONBEAT_E_NOT_STARTED = -4,
    /**
     * The calling thread neither called `onbeat_open` nor comes from `onbeat_thread_create`.
     */
    ONBEAT_E_THREAD = -5,
    /**
     * A defect of the library itself; please report it.
     */
    ONBEAT_E_INTERNAL = -6,
    /**
     * The interface cannot be used, is down, its queue is full, or a message is too long for it.
     */
    ONBEAT_E_NETWORK = -7,
    /**
     * The calling process was forked from the one that opened this, which alone may use it.
     */
    ONBEAT_E_FORKED = -8,
    /**
     * The system refuses what the call needs: a thread.
     */
    ONBEAT_E_SYSTEM = -9,
} onbeat_status;

/**
 * A traffic class.
 */
typedef enum onbeat_class {
    /**
     * SR class A: D is 2 ms.
     */
    ONBEAT_CLASS_A = 0,
    /**
     * SR class B: D is 50 ms.
     */
    ONBEAT_CLASS_B = 1,
    /**
     * Scheduled traffic: D is 100 us.
     */
    ONBEAT_CLASS_SCHEDULED = 2,
    /**
     * Sporadic traffic behind asynchronous shaping: D is 10 ms.
     */
    ONBEAT_CLASS_ASYNCHRONOUS = 3,
} onbeat_class;

/**
 * State of a channel endpoint's stream.
 */
typedef enum onbeat_stream_state {
    /**
     * SRP does not reserve for it: it is of a run, or `ONBEAT_RESERVE` was not asked for.
     */
    ONBEAT_STREAM_UNRESERVED = 0,
    /**
     * The reservation service is gone, and looked for.
     */
    ONBEAT_STREAM_NO_SERVICE = 1,
    /**
     * The link is down, or the neighbour has not been asked yet.
     */
    ONBEAT_STREAM_ASKING = 2,
    /**
     * Talker: no listener is known. Listener: the talker is known, the VLAN being joined.
     */
    ONBEAT_STREAM_ADVERTISED = 3,
    /**
     * Bandwidth is reserved.
     */
    ONBEAT_STREAM_READY = 4,
    /**
     * Bandwidth is reserved for some of the listeners.
     */
    ONBEAT_STREAM_READY_FAILED = 5,
    /**
     * There are listeners, and none can get the stream.
     */
    ONBEAT_STREAM_ASKING_FAILED = 6,
    /**
     * It cannot be reserved: `failure_code` and `bridge` say why.
     */
    ONBEAT_STREAM_FAILED = 7,
    /**
     * No talker is known.
     */
    ONBEAT_STREAM_NO_TALKER = 8,
    /**
     * The neighbour has SR classes, and not the stream's.
     */
    ONBEAT_STREAM_DOMAIN_MISMATCH = 9,
} onbeat_stream_state;

/**
 * Transport of frames to the network.
 */
typedef enum onbeat_transport {
    /**
     * AF_PACKET.
     */
    ONBEAT_PACKET = 0,
    /**
     * AF_XDP.
     */
    ONBEAT_XDP = 1,
    /**
     * UDP over IPv4 multicast.
     */
    ONBEAT_UDP4 = 2,
    /**
     * UDP over IPv6 multicast.
     */
    ONBEAT_UDP6 = 3,
} onbeat_transport;

/**
 * A program's membership in a run. Any of its threads may use it.
 */
typedef struct onbeat_context onbeat_context;

/**
 * A listener endpoint of a channel. Used by one thread at a time.
 */
typedef struct onbeat_listener onbeat_listener;

/**
 * Some listener endpoints, to be waited for. Used by one thread at a time, which is also the one
 * that uses its endpoints meanwhile.
 */
typedef struct onbeat_selector onbeat_selector;

/**
 * The talker endpoint of a channel. Used by one thread at a time.
 */
typedef struct onbeat_talker onbeat_talker;

/**
 * A thread that takes part in a run.
 */
typedef struct onbeat_thread onbeat_thread;

/**
 * Counters of a channel endpoint. Later versions may add counters at the end of the structure,
 * which only calls that take its size fill.
 */
typedef struct onbeat_counters {
    /**
     * Messages written.
     */
    uint64_t sent;
    /**
     * Messages received, each once: read, skipped by `onbeat_read_latest`, or expired.
     */
    uint64_t received;
    /**
     * Messages missing by sequence number.
     */
    uint64_t lost;
    /**
     * Messages that came after capture + D.
     */
    uint64_t late;
    /**
     * Copies of earlier messages.
     */
    uint64_t duplicate;
    /**
     * Writes that the declared rate did not allow at once.
     */
    uint64_t rate_exceeded;
    /**
     * Frames that were truncated, of another type, version or length.
     */
    uint64_t rejected_shape;
    /**
     * Frames of another stream, or to another address.
     */
    uint64_t rejected_stream;
    /**
     * Frames whose message has another size.
     */
    uint64_t rejected_size;
    /**
     * Messages of a second talker; `onbeat stat` names it.
     */
    uint64_t rejected_talker;
    /**
     * Messages with a capture time later than the clocks allow.
     */
    uint64_t rejected_future;
    /**
     * Messages whose CRC does not fit.
     */
    uint64_t rejected_damaged;
    /**
     * Messages whose tag does not fit: of somebody without the key, or repeated after 4 s.
     */
    uint64_t rejected_not_authentic;
    /**
     * Messages that name a key which this end does not have.
     */
    uint64_t rejected_unknown_key;
    /**
     * Authentic messages that were repeated.
     */
    uint64_t rejected_replayed;
    /**
     * Authentic messages of before this end was opened, or of an earlier start of the talker.
     */
    uint64_t rejected_stale;
    /**
     * Of the received messages, those that were older than the endpoint's lifespan and not handed
     * over.
     */
    uint64_t expired;
} onbeat_counters;

/**
 * Metadata of a received message. Later versions may add fields at the end of the structure, which
 * only `onbeat_listener_message` fills.
 */
typedef struct onbeat_message {
    /**
     * Capture time of the value, by the talker's clock.
     */
    int64_t capture_ns;
    /**
     * Receipt minus capture. A program that waits, in a read or in `onbeat_select`, receives what
     * has come by then when it continues. What came while it did not wait, it received when it
     * could first have been read. One that has taken the descriptor receives when a call hands
     * over.
     */
    int64_t latency_ns;
    /**
     * When the frame was at this host's port; on an interface without `ONBEAT_TIMESTAMPS`, when
     * it was read.
     */
    int64_t arrived_ns;
    /**
     * Now minus capture, at the return of the call that hands it over.
     */
    int64_t age_ns;
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
     * `ONBEAT_LATE`, `ONBEAT_UNCERTAIN` and `ONBEAT_REPEATED`; later versions may set more.
     */
    uint32_t flags;
} onbeat_message;

/**
 * The body of a thread.
 */
typedef void *(*onbeat_thread_body)(void *argument);

/**
 * An interface and its settings. All fields but `name` may be zero. Later versions may add
 * fields at the end, which only `onbeat_open_interface_sized` looks at.
 */
typedef struct onbeat_interface {
    /**
     * The interface's name.
     */
    const char *name;
    /**
     * An `onbeat_transport`.
     */
    uint32_t transport;
    /**
     * `ONBEAT_UNTAGGED` and the others, or-ed. Other bits are refused.
     */
    uint32_t flags;
    /**
     * AF_XDP: the receive queue.
     */
    uint32_t queue;
    /**
     * SO_PRIORITY per class; 0 means the priority code point.
     */
    uint32_t socket_priority[3];
    /**
     * Which network time, in nanoseconds since 1970 TAI, the calls count from.
     */
    int64_t epoch_ns;
    /**
     * How well the network clock must be synchronised for times to be certain; 0 means 1000.
     */
    int64_t clock_error_ns;
    /**
     * Latency above which the kernel's trace stops; 0 means never.
     */
    int64_t break_ns;
    /**
     * Path of the delay log; NULL means none.
     */
    const char *log;
    /**
     * Path of the file of keys; NULL means what the environment names.
     */
    const char *key_file;
} onbeat_interface;

/**
 * What both ends of a channel agree on: a row of the manifest. Numbers from C are checked. Later
 * versions may add fields at the end, which only `onbeat_open_interface_sized` and
 * `onbeat_declare_sized` look at.
 */
typedef struct onbeat_channel {
    /**
     * Unique, up to 31 octets.
     */
    const char *name;
    /**
     * Usually a group address.
     */
    uint8_t destination[6];
    /**
     * Unique, not 0.
     */
    uint64_t stream_id;
    /**
     * An `onbeat_class`, or-ed with `ONBEAT_CRC` or `ONBEAT_AUTHENTICATED` if that is wanted, and
     * with `ONBEAT_OWN_HOST`.
     */
    uint32_t traffic_class;
    /**
     * Octets of a message, 1 to 65536; above 1476 it is sent in several frames.
     */
    uint32_t size;
    /**
     * Messages that may come at once; 0 means 1.
     */
    uint32_t burst;
    /**
     * The least mean time between two messages.
     */
    int64_t interval_ns;
    /**
     * Capture to wake-up; 0 means the class's.
     */
    int64_t fixed_delay_ns;
    /**
     * VLAN identifier; 0 means 2.
     */
    uint16_t vlan;
    /**
     * Priority code point; 0 means the class's.
     */
    uint8_t pcp;
} onbeat_channel;

/**
 * What a listener endpoint knows of its talker, by the messages that were read. Later versions may
 * add fields at the end.
 */
typedef struct onbeat_liveness {
    /**
     * What is so now: `ONBEAT_MATCHED` and the others, or-ed; later versions may set more.
     */
    uint32_t state;
    /**
     * What began or ended since the last call, perhaps both; of the same bits.
     */
    uint32_t changed;
    /**
     * How often no message came for longer than the deadline.
     */
    uint64_t deadline_missed;
    /**
     * How often the talker was started again or replaced.
     */
    uint64_t restarts;
    /**
     * Messages of a second talker, all rejected.
     */
    uint64_t second_talker;
    /**
     * When the last message came; INT64_MIN before the first.
     */
    int64_t last_arrival_ns;
} onbeat_liveness;

/**
 * Reservation of a channel endpoint's stream. Later versions may add fields at the end.
 */
typedef struct onbeat_reservation {
    /**
     * An `onbeat_stream_state`.
     */
    uint32_t state;
    /**
     * Why it failed (802.1Q Table 46-15), else 0.
     */
    uint32_t failure_code;
    /**
     * The bridge that says so: two octets of priority, six of its address; else zeros.
     */
    uint8_t bridge[8];
    /**
     * VLAN identifier of its frames, 0 if unknown.
     */
    uint16_t vlan;
    /**
     * Priority code point of its frames.
     */
    uint8_t pcp;
    /**
     * 1 if no neighbour speaks MSRP: it has a share of this host's own port, no more.
     */
    uint8_t is_static;
} onbeat_reservation;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What a status means in a few words, of any number: of one that is no `onbeat_status` it says
 * that. Never NULL, valid for ever, the same for every call; `onbeat_last_error` says more of what
 * failed. Any thread may call it, and a signal handler. Never blocks, allocates nothing.
 */
const char *onbeat_strerror(int status);

/**
 * Why the last call on this thread that returned a negative status failed: a text of one line,
 * valid until the next call of this library on this thread. Never NULL.
 */
const char *onbeat_last_error(void);

/**
 * Opens the talker endpoint of the channel `name`, or of that whose stream's number is behind a
 * `#`, such as `#42`, in decimal digits; the program expects messages of `size`
 * octets. `ONBEAT_E_REFUSED` when the description says otherwise. Allocates.
 */
enum onbeat_status onbeat_talker_open(struct onbeat_context *context,
                                      const char *name,
                                      size_t size,
                                      struct onbeat_talker **out);

/**
 * Closes a talker endpoint and frees it. NULL is allowed.
 */
void onbeat_talker_close(struct onbeat_talker *talker);

/**
 * Sends the message at `message`. Blocks only while the channel's declared rate is exceeded and,
 * with `ONBEAT_RESERVE`, while bandwidth is reserved for no listener. `ONBEAT_LINK_DOWN`, of all
 * calls that write: the interface is down or not there, the message counts as not written, and the
 * rate holds as if it were. `capture_ns`, if not NULL, gets the capture time. Allocates nothing.
 */
enum onbeat_status onbeat_write(struct onbeat_talker *talker,
                                const void *message,
                                int64_t *capture_ns);

/**
 * Like `onbeat_write`, but returns `ONBEAT_RATE_EXCEEDED` instead of blocking; `capture_ns` then
 * gets the instant until which `onbeat_write` would wait. May return `ONBEAT_NOT_RESERVED`.
 */
enum onbeat_status onbeat_try_write(struct onbeat_talker *talker,
                                    const void *message,
                                    int64_t *capture_ns);

/**
 * Sends the `count` messages at `messages`, which follow each other without a gap, as that many
 * `onbeat_write` would, with a system call for up to 16 of them: waits while the declared rate
 * holds one, and ends at the first that is not sent, with what `onbeat_write` returns of that.
 * `written`, if not NULL, gets how many were sent, `capture_ns`, if not NULL, their capture times:
 * those of one system call follow each other by a nanosecond. Where a message is handed over
 * otherwise, as in virtual time, it is a loop. Allocates nothing.
 */
enum onbeat_status onbeat_write_many(struct onbeat_talker *talker,
                                     const void *messages,
                                     size_t count,
                                     size_t *written,
                                     int64_t *capture_ns);

/**
 * Like `onbeat_write_many`, but as that many `onbeat_try_write`: ends at the first message that
 * would have to wait, with `ONBEAT_RATE_EXCEEDED`; the capture time behind those of the messages
 * that were sent is then the instant until which `onbeat_write` would wait. May return
 * `ONBEAT_NOT_RESERVED`.
 */
enum onbeat_status onbeat_try_write_many(struct onbeat_talker *talker,
                                         const void *messages,
                                         size_t count,
                                         size_t *written,
                                         int64_t *capture_ns);

/**
 * Sends the message, then waits until its capture time + D, the instant at which the readers that
 * wait with `onbeat_read_wait` continue as well. `capture_ns` and `wakeup_error_ns`, if not NULL,
 * get the capture time, and target minus wake-up: negative when it woke after the target.
 * Allocates nothing.
 */
enum onbeat_status onbeat_write_wait(struct onbeat_talker *talker,
                                     const void *message,
                                     int64_t *capture_ns,
                                     int64_t *wakeup_error_ns);

/**
 * Sends the message so that it is captured and leaves at `at_ns`: launched by the kernel where the
 * interface has such a queueing discipline and `ONBEAT_LAUNCH_TIME` asks for it, else after
 * sleeping until then; later when the declared rate asks for it, now when `at_ns` has passed.
 * `capture_ns`, if not NULL, gets the capture time. Allocates nothing.
 */
enum onbeat_status onbeat_write_at(struct onbeat_talker *talker,
                                   const void *message,
                                   int64_t at_ns,
                                   int64_t *capture_ns);

/**
 * From now on calls that wait at this endpoint return `ONBEAT_TIMED_OUT` when this host's copy of
 * the network clock reads `until_ns`; `INT64_MAX` is without a limit. A message that was written
 * before stays written, and `onbeat_write_at` waits for its instant all the same. Never blocks,
 * allocates nothing.
 */
enum onbeat_status onbeat_talker_limit(struct onbeat_talker *talker, int64_t until_ns);

/**
 * The same for a listener endpoint. A message that was taken before stays taken.
 */
enum onbeat_status onbeat_listener_limit(struct onbeat_listener *listener, int64_t until_ns);

/**
 * Counters of a talker endpoint, those of version 0.1: `onbeat_talker_counters_sized` gives all.
 * Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_talker_counters(const struct onbeat_talker *talker,
                                          struct onbeat_counters *out);

/**
 * The same for a listener endpoint: `onbeat_listener_counters_sized` gives all.
 */
enum onbeat_status onbeat_listener_counters(const struct onbeat_listener *listener,
                                            struct onbeat_counters *out);

/**
 * Meets the program at the other end of two channels in opposite directions: sends `message` on
 * one, reads the other's into `received`, and continues at the later of the two capture times + D
 * (the longer one), which is the same instant of network time on both sides. `info`, if not NULL,
 * gets what is known of the received message; its `wakeup_error_ns` is that of this meeting.
 * `ONBEAT_LATE` is among its flags when the other side has continued already because a message was
 * lost. Ends at the earlier limit of both ends with `ONBEAT_TIMED_OUT`. Channels whose messages
 * are longer than a frame, and two ends of one channel, are refused with `ONBEAT_E_ARGUMENT`.
 * Allocates nothing.
 */
enum onbeat_status onbeat_rendezvous(struct onbeat_talker *talker,
                                     const void *message,
                                     struct onbeat_listener *listener,
                                     void *received,
                                     struct onbeat_message *info);

/**
 * Waits until one of `count` listener endpoints has something to read, at most `timeout_ns`, or
 * for ever if that is negative; `index` gets the position of the first that has.
 * `ONBEAT_TIMED_OUT` when none had in time. At most 256 ends in a run in virtual time, else 1024.
 * An end that has missed its deadline counts as well, once, though there is nothing to read. What
 * was there may turn out to be a frame that is not given to programs: read it with
 * `onbeat_try_read`. Allocates nothing.
 */
enum onbeat_status onbeat_select(struct onbeat_context *context,
                                 const struct onbeat_listener *const *listeners,
                                 size_t count,
                                 int64_t timeout_ns,
                                 size_t *index);

/**
 * A file descriptor that is readable (POLLIN) when there may be a message, for event loops; read
 * with `onbeat_try_read` until it says `ONBEAT_EMPTY`. From now on the end's messages are received
 * when a call hands them over. It belongs to the listener: do not close or read it.
 * `ONBEAT_E_REFUSED` in virtual time, which passes only in calls of this library: use
 * `onbeat_select`.
 */
enum onbeat_status onbeat_listener_descriptor(const struct onbeat_listener *listener,
                                              int *descriptor);

/**
 * Opens a listener endpoint of the channel `name`, or of that whose stream's number is behind a
 * `#`, such as `#42`, in decimal digits; the program expects messages of `size`
 * octets. `ONBEAT_E_REFUSED` when the description says otherwise. Allocates.
 */
enum onbeat_status onbeat_listener_open(struct onbeat_context *context,
                                        const char *name,
                                        size_t size,
                                        struct onbeat_listener **out);

/**
 * Closes a listener endpoint and frees it. NULL is allowed.
 */
void onbeat_listener_close(struct onbeat_listener *listener);

/**
 * Waits for a message. `info`, if not NULL, gets its metadata. Allocates nothing.
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
 * Takes a message if there is one, else returns `ONBEAT_EMPTY` and leaves `message` as it is. In a
 * run on the emulated network at most 1024 wait: when one more comes the oldest is lost. Never
 * blocks, allocates nothing.
 */
enum onbeat_status onbeat_try_read(struct onbeat_listener *listener,
                                   void *message,
                                   struct onbeat_message *info);

/**
 * Takes the newest message there is, and drops those before it, so that a reader which has fallen
 * behind has caught up at once. When there is no new one, gives the last one again, with
 * `ONBEAT_REPEATED`; `ONBEAT_EMPTY` when there never was one. `info`'s `age_ns` says how old it
 * is. Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_read_latest(struct onbeat_listener *listener,
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
 * Blocks until the run coordinator answers. Allocates.
 */
enum onbeat_status onbeat_open(struct onbeat_context **out);

/**
 * Ends set-up. Waits until every program of the system has come this far; returns at the common
 * start, which is the epoch of the network clock. After it, reading, writing and sleeping
 * allocate nothing.
 */
enum onbeat_status onbeat_start(struct onbeat_context *context);

/**
 * Leaves the run and frees `context`; its endpoints must be closed before. In virtual time the
 * rest of the run continues when the program has exited. NULL is allowed.
 */
void onbeat_close(struct onbeat_context *context);

/**
 * What this host's copy of the network clock reads. Never blocks; in virtual time it does not
 * continue until the program waits for something, so do not wait for it in a loop.
 */
enum onbeat_status onbeat_now(struct onbeat_context *context, int64_t *now_ns);

/**
 * Sleeps until this host's copy of the network clock reads `until_ns` or later; at once when it
 * does already. `woke_ns`, if not NULL, gets what it read then.
 */
enum onbeat_status onbeat_sleep_until(struct onbeat_context *context,
                                      int64_t until_ns,
                                      int64_t *woke_ns);

/**
 * Declares that the work since the last call takes `work_ns`. In virtual time, where work takes no
 * time by itself, that time passes now, and longer where the description says how many processors
 * (`cores`) the host's programs share; in real time nothing happens. `ONBEAT_STOPPED` when the run
 * is over.
 */
enum onbeat_status onbeat_work(struct onbeat_context *context, int64_t work_ns);

/**
 * The same, with a limit: when this host's copy of the network clock reads `until_ns` the work is
 * given up, with `ONBEAT_TIMED_OUT`; `INT64_MAX` is never. Work that is done just then is done. On
 * processors that are shared it is as urgent as `priority` says, 1 to 99, the greater the more
 * urgent, 0 for that of the program in the description; or, before all priorities, the earlier
 * `deadline_ns` is, an absolute deadline by the same clock; `INT64_MAX` is none.
 */
enum onbeat_status onbeat_work_until(struct onbeat_context *context,
                                     int64_t work_ns,
                                     int64_t until_ns,
                                     int32_t priority,
                                     int64_t deadline_ns);

/**
 * Waits for other threads of this program, as a futex does: at most until `until_ns` by this
 * host's copy of the network clock, `INT64_MAX` for ever. Returns `ONBEAT_OK` at once when
 * `*word`, which is read atomically, is not `value`; else when `onbeat_wake` is called for `word`,
 * or, rarely, for no reason: look at the word again. Then `ONBEAT_TIMED_OUT`, or `ONBEAT_STOPPED`
 * when the run is over. In virtual time, threads continue in the order in which they began to
 * wait. Allocates nothing.
 */
enum onbeat_status onbeat_wait(struct onbeat_context *context,
                               const uint32_t *word,
                               uint32_t value,
                               int64_t until_ns);

/**
 * As `onbeat_wait`, for what the thread `holder` of this program holds, as `gettid` numbers it; 0
 * if unknown. In virtual time, where threads share processors, that one's work is as urgent
 * meanwhile as the last work of the one that waits (priority inheritance); elsewhere this is
 * `onbeat_wait`. Allocates nothing.
 */
enum onbeat_status onbeat_wait_for(struct onbeat_context *context,
                                   const uint32_t *word,
                                   uint32_t value,
                                   int64_t until_ns,
                                   uint32_t holder);

/**
 * Wakes all threads of this program that wait for `word` in `onbeat_wait`. Change the word first.
 * Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_wake(struct onbeat_context *context, const uint32_t *word);

/**
 * Which clock of the machine reads what when this host's copy of the network clock reads `at_ns`,
 * for timers of the system: `clock` gets its number as `timer_create` and `clock_nanosleep` want
 * it (CLOCK_MONOTONIC), `machine_ns` its reading. That is as of now: ask again for an instant that
 * is far away, the clocks' rates differ. An instant more than a year from now is taken as one a
 * year from now. `ONBEAT_E_REFUSED` in virtual time, which no clock of the machine tells. Never
 * blocks, allocates nothing.
 */
enum onbeat_status onbeat_machine_time(struct onbeat_context *context,
                                       int64_t at_ns,
                                       int32_t *clock,
                                       int64_t *machine_ns);

/**
 * Creates a thread that takes part in the run; only after `onbeat_start`, from any thread that
 * does. Threads of a program wait for each other through channels, sleeps, `onbeat_wait` and
 * `onbeat_thread_join` only: virtual time stands still while one waits by other means. The body
 * ends by returning, or as a thread of POSIX may: by `pthread_exit`, or cancelled; an exception of
 * C++ that it does not catch ends the process. When the run is over before it could begin, it is
 * not called, and its result is NULL; after that this returns `ONBEAT_STOPPED`, makes none, and
 * `out` gets NULL. `ONBEAT_E_SYSTEM` when the system makes no thread; then the run does not expect
 * it. Calls of this library are no cancellation points: a request to cancel waits until one
 * outside of them. `argument` may be NULL.
 */
enum onbeat_status onbeat_thread_create(struct onbeat_context *context,
                                        onbeat_thread_body body,
                                        void *argument,
                                        struct onbeat_thread **out);

/**
 * For threads that the program creates by other means, such as `pthread_create` with attributes:
 * announces one that will call `onbeat_thread_begin` with `*number` as soon as it can. The run
 * waits for that. Only after `onbeat_start`, from any thread that takes part in the run.
 * `ONBEAT_STOPPED` when the run is over. On an interface it does nothing. Allocates.
 */
enum onbeat_status onbeat_thread_announce(struct onbeat_context *context, uint32_t *number);

/**
 * Makes the calling thread the announced one of this number; returns when the run lets it
 * continue. From then on it is as one of `onbeat_thread_create`, until it ends.
 */
enum onbeat_status onbeat_thread_begin(struct onbeat_context *context, uint32_t number);

/**
 * Waits, in the time of the run, until the announced thread of this number has ended: then it can
 * be joined by the means that created it. Outside of virtual time it does nothing.
 */
enum onbeat_status onbeat_thread_await(struct onbeat_context *context, uint32_t number);

/**
 * Waits until a thread has ended, and frees it. `result`, if not NULL, gets what its body
 * returned or gave to `pthread_exit`, or PTHREAD_CANCELED. The thread is freed whatever is
 * returned, unless it is NULL or the calling one.
 */
enum onbeat_status onbeat_thread_join(struct onbeat_thread *thread, void **result);

/**
 * Opens an interface of this host for channels, without a run: its network clock is the time.
 * `channels` are the `count` rows that this program knows; more may come by `onbeat_declare`.
 * Then ends are opened as in a run; `onbeat_start` is not needed; any thread may use any end, one
 * at a time. Allocates.
 */
enum onbeat_status onbeat_open_interface(const struct onbeat_interface *interface,
                                         const struct onbeat_channel *channels,
                                         size_t count,
                                         struct onbeat_context **out);

/**
 * Makes one more channel known to a program on an interface. `ONBEAT_E_REFUSED` when it is wrong,
 * or its name or stream identifier is taken. Allocates.
 */
enum onbeat_status onbeat_declare(struct onbeat_context *context,
                                  const struct onbeat_channel *channel);

/**
 * Names the address that a declared channel's talker sends from: listeners that are opened from
 * now on take the frames of that station only, and count those of others as `rejected_talker`.
 * Datagrams carry no such address and are not checked. `ONBEAT_E_REFUSED` when the channel is not
 * declared, or the address is a group's or all zero. The description's `talker_address` does the
 * same in a run.
 */
enum onbeat_status onbeat_name_talker(struct onbeat_context *context,
                                      const char *channel,
                                      const uint8_t *address);

/**
 * Reads the keys of authenticated channels again, from where they were read; each endpoint uses
 * them from its next message on. No message is lost as long as talkers and listeners have the key
 * that is written with in common. `ONBEAT_E_REFUSED` when they cannot be read: then they stay as
 * they are. On the emulated networks of a run it does nothing. May block and allocate: not for a
 * thread with deadlines.
 */
enum onbeat_status onbeat_reload_keys(struct onbeat_context *context);

/**
 * Makes all waiting calls on an interface return `ONBEAT_STOPPED` within 100 ms, and all later
 * ones at once. May be called from any thread and from a signal handler. In a run it does nothing:
 * the run says when it is over. NULL is allowed.
 */
enum onbeat_status onbeat_stop(struct onbeat_context *context);

/**
 * Sets the longest time between two messages at an endpoint; 0: any. It counts from now until the
 * next message, before `onbeat_start` from that. When it is missed, `onbeat_select` returns the
 * endpoint, once, also without a message to read; reads wait on. In a run an endpoint begins with
 * the `deadline_us` of its channel. Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_listener_deadline(struct onbeat_listener *listener, int64_t deadline_ns);

/**
 * Sets the age above which messages are not handed over at an endpoint, by this host's clock when
 * a call comes for them: they are counted as received and `expired`, and the call looks further.
 * 0: any age; else not less than the channel's fixed delay, until when a message is in time. In a
 * run an endpoint begins with the `lifespan_us` of its channel. Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_listener_lifespan(struct onbeat_listener *listener, int64_t lifespan_ns);

/**
 * What an endpoint knows of its talker; `out` may be NULL. A message counts once it is read.
 * `size` is `sizeof(struct onbeat_liveness)` by the header that the program was compiled with.
 * Never waits for a message, allocates nothing; one system call where a deadline is over.
 */
enum onbeat_status onbeat_listener_liveness(struct onbeat_listener *listener,
                                            size_t size,
                                            struct onbeat_liveness *out);

/**
 * What the library has done for this process, and was allowed to: `ONBEAT_MEMORY_LOCKED` and the
 * others, or-ed; later versions may set more. What it was not allowed to is no failure. Never
 * blocks for long, allocates nothing.
 */
enum onbeat_status onbeat_precautions(struct onbeat_context *context, uint32_t *taken);

/**
 * How the stream of a talker endpoint stands. `size` is `sizeof(struct onbeat_reservation)` by the
 * header that the program was compiled with; `out` may be NULL. Takes a lock for a short time: not
 * for real-time paths. Allocates nothing.
 */
enum onbeat_status onbeat_talker_reservation(const struct onbeat_talker *talker,
                                             size_t size,
                                             struct onbeat_reservation *out);

/**
 * The same for a listener endpoint; `out` may be NULL.
 */
enum onbeat_status onbeat_listener_reservation(const struct onbeat_listener *listener,
                                               size_t size,
                                               struct onbeat_reservation *out);

/**
 * Makes a selector of `count` listener endpoints, which must stay open until it is closed.
 * `onbeat_selector_wait` does what `onbeat_select` does, for a price that does not grow with the
 * number of endpoints. At most 256 endpoints in a run in virtual time, else 4096. Allocates.
 */
enum onbeat_status onbeat_selector_open(struct onbeat_context *context,
                                        const struct onbeat_listener *const *listeners,
                                        size_t count,
                                        struct onbeat_selector **out);

/**
 * Waits as `onbeat_select` does: until one of the selector's endpoints has something to read or
 * has missed its deadline, at most `timeout_ns`, or for ever if that is negative; `index` gets the
 * position of the first that has. `ONBEAT_TIMED_OUT` when none had in time. Allocates nothing.
 */
enum onbeat_status onbeat_selector_wait(struct onbeat_selector *selector,
                                        int64_t timeout_ns,
                                        size_t *index);

/**
 * Closes a selector and frees it. Its endpoints stay open. NULL is allowed.
 */
void onbeat_selector_close(struct onbeat_selector *selector);

/**
 * Like `onbeat_talker_counters`, where `out` has `size` octets: `sizeof(struct onbeat_counters)`
 * of the header that the program was compiled with. Counters for which there is no room are left
 * out; those that the library does not know are 0. Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_talker_counters_sized(const struct onbeat_talker *talker,
                                                size_t size,
                                                struct onbeat_counters *out);

/**
 * The same for a listener endpoint.
 */
enum onbeat_status onbeat_listener_counters_sized(const struct onbeat_listener *listener,
                                                  size_t size,
                                                  struct onbeat_counters *out);

/**
 * What was known of the message that a call handed over last at this end, where `info` has `size`
 * octets: `sizeof(struct onbeat_message)` of the header that the program was compiled with. What
 * has no room is left out, what the library does not know is 0. `ONBEAT_EMPTY` when there was no
 * message yet. Never blocks, allocates nothing.
 */
enum onbeat_status onbeat_listener_message(const struct onbeat_listener *listener,
                                           size_t size,
                                           struct onbeat_message *info);

/**
 * Like `onbeat_open_interface`, where `interface` has `interface_size` octets and each of
 * `channels` has `channel_size`: `sizeof` by the header that the program was compiled with. Fields
 * that the program does not know are 0; those that the library does not know must be.
 */
enum onbeat_status onbeat_open_interface_sized(const struct onbeat_interface *interface,
                                               size_t interface_size,
                                               const struct onbeat_channel *channels,
                                               size_t channel_size,
                                               size_t count,
                                               struct onbeat_context **out);

/**
 * Like `onbeat_declare`, where `channel` has `size` octets: `sizeof(struct onbeat_channel)` by the
 * header that the program was compiled with, as for `onbeat_open_interface_sized`. Allocates.
 */
enum onbeat_status onbeat_declare_sized(struct onbeat_context *context,
                                        const struct onbeat_channel *channel,
                                        size_t size);

/**
 * The library's version as `ONBEAT_VERSION_NUMBER` makes it, where `ONBEAT_VERSION` is that of the
 * header: a program that needs what came with a version asks both. Never blocks, allocates
 * nothing.
 */
uint32_t onbeat_version(void);

/**
 * The library's version as a text, `MAJOR.MINOR.PATCH`; the header's is `ONBEAT_VERSION_TEXT`.
 * Never NULL, valid for ever.
 */
const char *onbeat_version_text(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
