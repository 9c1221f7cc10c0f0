/*
 * onbeat.hpp: network channels with a bounded delay, for C++17.
 *
 * Handles that close themselves, messages that have a type, and times that cannot be mixed up, over
 * the calls of onbeat.h, which says in full what each does. Header only: link with libonbeat.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Life of a program:
 *   a Context; a Talker or a Listener for each channel end; Context::start; then write, read and
 *   sleep until a call returns Status::stopped. The ends must be destroyed before their Context, as
 *   local variables are that are declared after it.
 *
 * What happens in the course of things is a Status. What does not is thrown as an Error: a program
 * that was built wrong, an interface that went away. A call that throws Error has done nothing. A
 * moved-from handle may be destroyed or assigned to; any other use of it throws Error.
 * Real-time: what onbeat.h says of a call holds here; only throwing allocates on top of it.
 */

#pragma once

#include "onbeat.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace onbeat {

/** The network clock as this host reads it, for std::chrono; a Context reads it. */
struct NetworkClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<NetworkClock>;
    /** It may be set while it runs. */
    static constexpr bool is_steady = false;
};

/** An instant of the network clock; time_since_epoch() counts from the start of the run. */
using Time = NetworkClock::time_point;

/** A length of time. Anything shorter than a nanosecond does not convert by itself. */
using Duration = std::chrono::nanoseconds;

/** What a call says that did not fail. */
enum class [[nodiscard]] Status {
    /** Done. */
    ok = ONBEAT_OK,
    /** The run is over: clean up and exit. */
    stopped = ONBEAT_STOPPED,
    /** There is no message. */
    empty = ONBEAT_EMPTY,
    /** No message came in time. */
    timed_out = ONBEAT_TIMED_OUT,
    /** The channel's declared rate does not allow a message yet. */
    rate_exceeded = ONBEAT_RATE_EXCEEDED,
    /** The interface is down or not there now: the message was not sent. */
    link_down = ONBEAT_LINK_DOWN,
    /** The channel's stream is not reserved: the message was not sent. */
    not_reserved = ONBEAT_NOT_RESERVED,
};

/** A call that failed: what() is the text of onbeat_last_error. */
class Error : public std::runtime_error {
public:
    /** Keeps `status`, and why the last call on this thread failed. */
    explicit Error(onbeat_status status)
        : std::runtime_error(status < 0 ? onbeat_last_error() : "the run is over"),
          status_(status) {}

    /** Which kind of failure: a number of onbeat.h, below zero; ONBEAT_STOPPED when a run was over
     * before the program could join it. */
    onbeat_status status() const noexcept { return status_; }

private:
    onbeat_status status_;
};

/** What is known of a message that was read. */
struct Message {
    /** When the value was captured, by the talker's clock. */
    Time capture;
    /** Receipt minus capture; onbeat_message says when a message is received. */
    Duration latency{};
    /** When the frame was at this host's port, or was read: see onbeat_message. */
    Time arrived;
    /** Now minus capture, at the return of the call that hands it over. */
    Duration age{};
    /** After a call that waits for capture + D: target minus wake-up, negative when it woke after
     * the target. */
    Duration wakeup_error{};
    /** Number of the message, from 0. */
    std::uint64_t sequence = 0;
    /** Messages lost between the one before and this one. */
    std::uint32_t gap = 0;
    /** It came later than capture + D. */
    bool late = false;
    /** The talker's clock was not synchronised. */
    bool uncertain = false;
    /** Not a new message but, again, the last one. */
    bool repeated = false;
};

/** What has happened at a channel end so far. */
using Counters = ::onbeat_counters;

/** What a listener knows of its talker: onbeat_liveness; its bits are ONBEAT_MATCHED and others. */
using Liveness = ::onbeat_liveness;

/** A traffic class. */
enum class Class : std::uint32_t {
    /** SR class A: D is 2 ms. */
    a = ONBEAT_CLASS_A,
    /** SR class B: D is 50 ms. */
    b = ONBEAT_CLASS_B,
    /** Scheduled traffic: D is 100 us. */
    scheduled = ONBEAT_CLASS_SCHEDULED,
    /** Sporadic traffic behind asynchronous shaping: D is 10 ms. */
    asynchronous = ONBEAT_CLASS_ASYNCHRONOUS,
};

/** How frames get to the network. */
enum class Transport : std::uint32_t {
    /** AF_PACKET. */
    packet = ONBEAT_PACKET,
    /** AF_XDP. */
    xdp = ONBEAT_XDP,
    /** UDP over IPv4 multicast. */
    udp4 = ONBEAT_UDP4,
    /** UDP over IPv6 multicast. */
    udp6 = ONBEAT_UDP6,
};

/** How a program reaches the network without a run. Only the name must be given. */
struct Interface {
    /** The interface's name. */
    std::string name{};
    /** How frames get to the network. */
    Transport transport = Transport::packet;
    /** ONBEAT_UNTAGGED and the others, or-ed. */
    std::uint32_t flags = 0;
    /** AF_XDP: the receive queue. */
    std::uint32_t queue = 0;
    /** SO_PRIORITY per class; 0 means the priority code point. */
    std::array<std::uint32_t, 3> socket_priority{};
    /** Which network time, since 1970 TAI, times count from. */
    Duration epoch{};
    /** How well the network clock must be synchronised for times to count as certain; 0 means
     * 1 us. */
    Duration clock_error{};
    /** Freeze the kernel's trace when a message takes longer; 0 means never. */
    Duration break_after{};
    /** Where the delay log goes; empty means nowhere. */
    std::string log{};
    /** The file of keys; empty means what the environment names. */
    std::string key_file{};
};

/** What a channel's frames carry behind the message. */
enum class Integrity : std::uint32_t {
    /** Nothing. */
    none = 0,
    /** A counter and a CRC of 32 bits. */
    crc = ONBEAT_CRC,
    /** A counter and a tag of 128 bits, made with a key that both ends have. */
    authenticated = ONBEAT_AUTHENTICATED,
};

/** What both ends of a channel agree on: a row of the manifest. */
struct Channel {
    /** Unique, up to 31 octets. */
    std::string name{};
    /** Usually a group address. */
    std::array<std::uint8_t, 6> destination{};
    /** Unique, not 0. */
    std::uint64_t stream_id = 0;
    /** The traffic class. */
    Class traffic_class = Class::a;
    /** Octets of a message: sizeof its type. */
    std::uint32_t size = 0;
    /** The least mean time between two messages. */
    Duration interval{};
    /** How many messages may come at once. */
    std::uint32_t burst = 1;
    /** Capture to wake-up; 0 means the class's. */
    Duration fixed_delay{};
    /** VLAN identifier; 0 means 2. */
    std::uint16_t vlan = 0;
    /** Priority code point; 0 means the class's. */
    std::uint8_t pcp = 0;
    /** What readers check messages by. */
    Integrity integrity = Integrity::none;
    /** The talker is on this host, perhaps in this program: listeners here receive what leaves by
     * the interface, too. */
    bool own_host = false;
};

namespace detail {

inline Status check(onbeat_status status) {
    if (status < 0)
        throw Error(status);
    return static_cast<Status>(status);
}

/* A name for C, which would end it at its first zero. */
inline const char *plain(const std::string &name) {
    if (name.find('\0') != std::string::npos)
        throw std::invalid_argument("a name has no character 0");
    return name.c_str();
}

inline void must(onbeat_status status) {
    if (status != ONBEAT_OK)
        throw Error(status);
}

template <auto close> struct Close {
    template <class Handle> void operator()(Handle *handle) const noexcept { close(handle); }
};

template <class Handle, auto close> using Owned = std::unique_ptr<Handle, Close<close>>;

inline Time time(std::int64_t ns) noexcept { return Time(Duration(ns)); }

inline std::int64_t ns(Time time) noexcept { return time.time_since_epoch().count(); }

inline Message message(const onbeat_message &from) noexcept {
    Message to;
    to.capture = time(from.capture_ns);
    to.latency = Duration(from.latency_ns);
    to.arrived = time(from.arrived_ns);
    to.age = Duration(from.age_ns);
    to.wakeup_error = Duration(from.wakeup_error_ns);
    to.sequence = from.sequence;
    to.gap = from.gap;
    to.late = (from.flags & ONBEAT_LATE) != 0;
    to.uncertain = (from.flags & ONBEAT_UNCERTAIN) != 0;
    to.repeated = (from.flags & ONBEAT_REPEATED) != 0;
    return to;
}

inline onbeat_channel channel(const Channel &from) noexcept {
    onbeat_channel to{};
    to.name = plain(from.name);
    for (std::size_t at = 0; at < from.destination.size(); at++)
        to.destination[at] = from.destination[at];
    to.stream_id = from.stream_id;
    to.traffic_class = static_cast<std::uint32_t>(from.traffic_class) |
                       static_cast<std::uint32_t>(from.integrity) |
                       static_cast<std::uint32_t>(from.own_host ? ONBEAT_OWN_HOST : 0);
    to.size = from.size;
    to.burst = from.burst;
    to.interval_ns = from.interval.count();
    to.fixed_delay_ns = from.fixed_delay.count();
    to.vlan = from.vlan;
    to.pcp = from.pcp;
    return to;
}

/* The body of a thread, and what it threw. */
struct Body {
    virtual ~Body() = default;
    virtual void run() = 0;
    std::exception_ptr thrown;

    static void *enter(void *argument) {
        auto *body = static_cast<Body *>(argument);
        try {
            body->run();
#ifdef __GLIBCXX__
        } catch (abi::__forced_unwind &) { /* pthread_exit, or it is cancelled */
            throw;
#endif
        } catch (...) {
            body->thrown = std::current_exception();
        }
        return nullptr;
    }
};

template <class Function> struct BodyOf final : Body {
    explicit BodyOf(Function from) : function(std::move(from)) {}
    void run() override { function(); }
    Function function;
};

template <class T> constexpr void must_be_a_message() {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "a message is copied octet by octet to another program: let it be trivially "
                  "copyable and without pointers");
    static_assert(sizeof(T) <= 65536, "a message has 1 to 65536 octets");
}

} // namespace detail

template <class T> class Listener;

/** A program's membership in a run, or its interface. Any thread may use it. */
class Context {
public:
    /** Joins the run, or opens the interface, that the environment names: onbeat_open. Throws. */
    Context() {
        ::onbeat_context *context = nullptr;
        detail::must(onbeat_open(&context));
        context_.reset(context);
    }

    /** Opens an interface, with the channels that this program knows: onbeat_open_interface.
     * Throws. */
    explicit Context(const Interface &interface, const std::vector<Channel> &channels = {}) {
        onbeat_interface settings{};
        settings.name = detail::plain(interface.name);
        settings.transport = static_cast<std::uint32_t>(interface.transport);
        settings.flags = interface.flags;
        settings.queue = interface.queue;
        for (std::size_t at = 0; at < interface.socket_priority.size(); at++)
            settings.socket_priority[at] = interface.socket_priority[at];
        settings.epoch_ns = interface.epoch.count();
        settings.clock_error_ns = interface.clock_error.count();
        settings.break_ns = interface.break_after.count();
        settings.log = interface.log.empty() ? nullptr : interface.log.c_str();
        settings.key_file = interface.key_file.empty() ? nullptr : interface.key_file.c_str();
        std::vector<onbeat_channel> rows;
        for (const Channel &channel : channels)
            rows.push_back(detail::channel(channel));
        ::onbeat_context *context = nullptr;
        detail::must(onbeat_open_interface_sized(&settings, sizeof settings, rows.data(),
                                                 sizeof(onbeat_channel), rows.size(), &context));
        context_.reset(context);
    }

    /** Makes one more channel known to a program on an interface: onbeat_declare. Throws. */
    void declare(const Channel &channel) {
        const onbeat_channel row = detail::channel(channel);
        detail::must(onbeat_declare_sized(native(), &row, sizeof row));
    }

    /** Ends set-up and waits for the common start: onbeat_start. */
    Status start() { return detail::check(onbeat_start(native())); }

    /** What this host's copy of the network clock reads: onbeat_now. */
    Time now() const {
        std::int64_t now = 0;
        detail::must(onbeat_now(native(), &now));
        return detail::time(now);
    }

    /** Sleeps until this host's copy of the network clock reads `until` or later:
     * onbeat_sleep_until. `woke`, if not null, gets what it read then. */
    Status sleep_until(Time until, Time *woke = nullptr) {
        std::int64_t woke_ns = 0;
        const auto status =
            detail::check(onbeat_sleep_until(native(), detail::ns(until), &woke_ns));
        if (woke != nullptr && status == Status::ok)
            *woke = detail::time(woke_ns);
        return status;
    }

    /** Declares that the work since the last call takes so long: onbeat_work. */
    Status work(Duration span) { return detail::check(onbeat_work(native(), span.count())); }

    /** Waits until one of the listeners, of whatever types, has something to read; `index` gets the
     * position of the first that has: onbeat_select. */
    template <class... T> Status select(std::size_t &index, const Listener<T> &...listeners) {
        const onbeat_listener *all[] = {listeners.native()...};
        return select(index, all, sizeof...(T), Duration(-1));
    }

    /** The same, for at most `timeout`; then Status::timed_out. */
    template <class... T>
    Status select_for(Duration timeout, std::size_t &index, const Listener<T> &...listeners) {
        const onbeat_listener *all[] = {listeners.native()...};
        return select(index, all, sizeof...(T), timeout < Duration(0) ? Duration(0) : timeout);
    }

    /** The same for `count` listeners that only the running program knows, by their native
     * handles; for ever if `timeout` is negative. */
    Status select(std::size_t &index, const onbeat_listener *const *listeners, std::size_t count,
                  Duration timeout) {
        return detail::check(onbeat_select(native(), listeners, count, timeout.count(), &index));
    }

    /** Names the address that a declared channel's talker sends from, of 6 octets:
     * onbeat_name_talker. Throws. */
    void name_talker(const char *channel, const std::uint8_t *address) {
        detail::must(onbeat_name_talker(native(), channel, address));
    }

    /** Reads the keys of authenticated channels again: onbeat_reload_keys. Throws. */
    void reload_keys() { detail::must(onbeat_reload_keys(native())); }

    /** What the library has done against delays of this process, ONBEAT_MEMORY_LOCKED and the
     * others, or-ed: onbeat_precautions. Throws. */
    std::uint32_t precautions() {
        std::uint32_t taken = 0;
        detail::must(onbeat_precautions(native(), &taken));
        return taken;
    }

    /** Makes all waiting calls on an interface return Status::stopped; for signal handlers too:
     * onbeat_stop. */
    void stop() noexcept { static_cast<void>(onbeat_stop(native())); }

    /** The handle for calls of onbeat.h; it stays this object's. */
    ::onbeat_context *native() const noexcept { return context_.get(); }

private:
    detail::Owned<::onbeat_context, onbeat_close> context_;
};

/** The talker endpoint of a channel for messages of type T. Used by one thread at a time. Octets
 * between T's members are sent as they are. */
template <class T> class Talker {
public:
    /** Opens the channel: onbeat_talker_open. Throws, for instance when it has another size. */
    Talker(Context &context, const std::string &name) {
        detail::must_be_a_message<T>();
        onbeat_talker *talker = nullptr;
        detail::must(onbeat_talker_open(context.native(), detail::plain(name), sizeof(T),
                                        &talker));
        talker_.reset(talker);
    }

    /** Sends a message, and blocks only while the declared rate is exceeded: onbeat_write. All
     * writes give Status::link_down while the interface is down or not there.
     * `capture`, if not null, gets the capture time. */
    Status write(const T &message, Time *capture = nullptr) {
        std::int64_t at = 0;
        return give(onbeat_write(native(), &message, &at), at, capture);
    }

    /** The same, but gives Status::rate_exceeded instead of blocking: onbeat_try_write. `capture`
     * then gets the instant until which `write` would wait. */
    Status try_write(const T &message, Time *capture = nullptr) {
        std::int64_t at = 0;
        return give(onbeat_try_write(native(), &message, &at), at, capture);
    }

    /** Sends an array of messages, as that many `write`, with fewer system calls:
     * onbeat_write_many. `written`, if not null, gets how many were sent, the first ones. */
    Status write_many(const T *messages, std::size_t count, std::size_t *written = nullptr) {
        const auto sent = onbeat_write_many(native(), messages, count, written, nullptr);
        return detail::check(sent);
    }

    /** The same as that many `try_write`: onbeat_try_write_many. */
    Status try_write_many(const T *messages, std::size_t count, std::size_t *written = nullptr) {
        const auto sent = onbeat_try_write_many(native(), messages, count, written, nullptr);
        return detail::check(sent);
    }

    /** Sends a message, then waits until its capture time + D: onbeat_write_wait. `wakeup_error`,
     * if not null, gets target minus wake-up. */
    Status write_wait(const T &message, Time *capture = nullptr,
                      Duration *wakeup_error = nullptr) {
        std::int64_t at = 0, error = 0;
        const auto status = give(onbeat_write_wait(native(), &message, &at, &error), at, capture);
        if (wakeup_error != nullptr && status == Status::ok)
            *wakeup_error = Duration(error);
        return status;
    }

    /** Sends a message so that it is captured and leaves at `when`: onbeat_write_at. */
    Status write_at(const T &message, Time when, Time *capture = nullptr) {
        std::int64_t at = 0;
        return give(onbeat_write_at(native(), &message, detail::ns(when), &at), at, capture);
    }

    /** What has happened at this end so far: onbeat_talker_counters. */
    Counters counters() const {
        Counters counters{};
        detail::must(onbeat_talker_counters_sized(native(), sizeof counters, &counters));
        return counters;
    }

    /** The handle for calls of onbeat.h; it stays this object's. */
    onbeat_talker *native() const noexcept { return talker_.get(); }

private:
    /* By reference: `at` may be bound before the call that gives `status` has written it. */
    static Status give(onbeat_status status, const std::int64_t &at, Time *capture) {
        const auto checked = detail::check(status);
        if (capture != nullptr && (checked == Status::ok || checked == Status::rate_exceeded))
            *capture = detail::time(at);
        return checked;
    }

    detail::Owned<onbeat_talker, onbeat_talker_close> talker_;
};

/** A listener endpoint of a channel for messages of type T. Used by one thread at a time. A call
 * that does not return Status::ok leaves the message and its metadata as they are. */
template <class T> class Listener {
public:
    /** Opens the channel: onbeat_listener_open. Throws, for instance when it has another size. */
    Listener(Context &context, const std::string &name) {
        detail::must_be_a_message<T>();
        onbeat_listener *listener = nullptr;
        detail::must(onbeat_listener_open(context.native(), detail::plain(name), sizeof(T),
                                          &listener));
        listener_.reset(listener);
    }

    /** Waits for a message: onbeat_read. `info`, if not null, gets what is known of it. */
    Status read(T &message, Message *info = nullptr) {
        onbeat_message known{};
        return give(onbeat_read(native(), &message, &known), known, info);
    }

    /** Waits for a message, then until its capture time + D: onbeat_read_wait. */
    Status read_wait(T &message, Message *info = nullptr) {
        onbeat_message known{};
        return give(onbeat_read_wait(native(), &message, &known), known, info);
    }

    /** Takes a message if there is one, else gives Status::empty: onbeat_try_read. */
    Status try_read(T &message, Message *info = nullptr) {
        onbeat_message known{};
        return give(onbeat_try_read(native(), &message, &known), known, info);
    }

    /** Takes the newest message, or gives the last one again: onbeat_read_latest. */
    Status read_latest(T &message, Message *info = nullptr) {
        onbeat_message known{};
        return give(onbeat_read_latest(native(), &message, &known), known, info);
    }

    /** Waits for a message for at most `timeout`, then gives Status::timed_out:
     * onbeat_read_timeout. */
    Status read_timeout(T &message, Duration timeout, Message *info = nullptr) {
        onbeat_message known{};
        return give(onbeat_read_timeout(native(), &message, timeout.count(), &known), known, info);
    }

    /** A descriptor that is readable when there may be a message, for event loops:
     * onbeat_listener_descriptor. It stays this object's. Throws in virtual time. */
    int descriptor() const {
        int descriptor = -1;
        detail::must(onbeat_listener_descriptor(native(), &descriptor));
        return descriptor;
    }

    /** The longest time between two messages, any if zero; a select gives the listener back when it
     * is missed: onbeat_listener_deadline. Throws. */
    void deadline(Duration deadline) {
        detail::must(onbeat_listener_deadline(native(), deadline.count()));
    }

    /** Sets the age above which messages are not handed over, 0 for any:
     * onbeat_listener_lifespan. Throws. */
    void lifespan(Duration lifespan) {
        detail::must(onbeat_listener_lifespan(native(), lifespan.count()));
    }

    /** What is known of the talker, and what has changed since the last call:
     * onbeat_listener_liveness. */
    Liveness liveness() const {
        Liveness liveness{};
        detail::must(onbeat_listener_liveness(native(), sizeof liveness, &liveness));
        return liveness;
    }

    /** What has happened at this end so far: onbeat_listener_counters. */
    Counters counters() const {
        Counters counters{};
        detail::must(onbeat_listener_counters_sized(native(), sizeof counters, &counters));
        return counters;
    }

    /** The handle for calls of onbeat.h; it stays this object's. */
    onbeat_listener *native() const noexcept { return listener_.get(); }

private:
    template <class S, class R>
    friend Status rendezvous(Talker<S> &, const S &, Listener<R> &, R &, Message *);

    static Status give(onbeat_status status, const onbeat_message &known, Message *info) {
        const auto checked = detail::check(status);
        if (info != nullptr && checked == Status::ok)
            *info = detail::message(known);
        return checked;
    }

    detail::Owned<onbeat_listener, onbeat_listener_close> listener_;
};

/** Meets the program at the other end of two channels in opposite directions: sends `message`,
 * reads the other's into `received`, and continues at the same instant of network time as the
 * other: onbeat_rendezvous. */
template <class S, class R>
Status rendezvous(Talker<S> &talker, const S &message, Listener<R> &listener, R &received,
                  Message *info = nullptr) {
    onbeat_message known{};
    return Listener<R>::give(onbeat_rendezvous(talker.native(), &message, listener.native(),
                                               &received, &known),
                             known, info);
}

/** A thread that takes part in a run; std::thread would make virtual time stand still. */
class Thread {
public:
    /** Calls `function` on a new thread: onbeat_thread_create. Allocates; throws. */
    template <class Function>
    Thread(Context &context, Function function)
        : body_(std::make_unique<detail::BodyOf<Function>>(std::move(function))) {
        onbeat_thread *thread = nullptr;
        detail::must(
            onbeat_thread_create(context.native(), detail::Body::enter, body_.get(), &thread));
        thread_ = thread;
    }

    /** Takes another's thread. */
    Thread(Thread &&other) noexcept
        : body_(std::move(other.body_)), thread_(std::exchange(other.thread_, nullptr)) {}

    Thread &operator=(Thread &&) = delete;

    /** Waits until the thread has ended, unless that was done already; what its function threw is
     * then lost. */
    ~Thread() {
        if (thread_ != nullptr)
            static_cast<void>(onbeat_thread_join(thread_, nullptr));
    }

    /** Waits until the thread has ended, in the time of the run: onbeat_thread_join. Throws what
     * its function threw. */
    Status join() {
        const auto status = onbeat_thread_join(thread_, nullptr);
        /* A thread that would wait for itself is there still. */
        if (status != ONBEAT_E_ARGUMENT)
            thread_ = nullptr;
        if (body_ != nullptr && body_->thrown)
            std::rethrow_exception(std::exchange(body_->thrown, nullptr));
        return detail::check(status);
    }

private:
    std::unique_ptr<detail::Body> body_;
    onbeat_thread *thread_ = nullptr;
};

} // namespace onbeat
