// Uses every call of onbeat.hpp: `left` writes, `right` reads, in a run in virtual time.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "calls.hpp"
#include <memory>
#include <pthread.h>
#include <stdexcept>

using namespace std::chrono_literals;
using onbeat::Context;
using onbeat::Listener;
using onbeat::Status;
using onbeat::Talker;
using onbeat::Time;

template <class T> constexpr bool moves_only() {
    return std::is_nothrow_move_constructible_v<T> && !std::is_copy_constructible_v<T>;
}

static_assert(moves_only<Context>() && moves_only<onbeat::Thread>());
static_assert(moves_only<Talker<int>>() && moves_only<Listener<int>>());
static_assert(!std::is_convertible_v<std::int64_t, Time>, "a bare number is no time");
static_assert(!std::is_convertible_v<std::int64_t, onbeat::Duration>);
static_assert(sizeof(Talker<Pair>) == sizeof(void *), "a handle costs what C's costs");

static void refusals(Context &run, Talker<std::uint64_t> &out) {
    const auto [size, why] = thrown_by([&] { Listener<std::uint32_t>(run, "d"); });
    EXPECT(size == ONBEAT_E_REFUSED && why.find("of 16 octets") != std::string::npos);
    EXPECT(thrown_by([&] { Listener<Pair>(run, "x"); }).first == ONBEAT_E_REFUSED);
    EXPECT(thrown_by([] { Context(); }).first == ONBEAT_E_COORDINATOR);
    EXPECT(thrown_by([&] { static_cast<void>(out.write(0)); }).first == ONBEAT_E_NOT_STARTED);
    EXPECT(thrown_by([&] { run.declare({}); }).first == ONBEAT_E_ARGUMENT);
    Talker<std::uint64_t> moved = std::move(out);
    EXPECT(thrown_by([&] { static_cast<void>(out.write(0)); }).first == ONBEAT_E_ARGUMENT);
    out = std::move(moved);
    try {
        Listener<Pair>(run, std::string("d\0x", 3));
        EXPECT(!"a name ends where it ends");
    } catch (const std::invalid_argument &) {
    }
}

static void threads(Context &run) {
    bool ran = false;
    onbeat::Thread thread(run, [&] {
        MUST(run.sleep_until(run.now() + 1ms));
        ran = true;
        throw std::runtime_error("from a thread");
    });
    try {
        static_cast<void>(thread.join());
        EXPECT(!"the join throws what the thread threw");
    } catch (const std::runtime_error &error) {
        EXPECT(ran && std::string(error.what()) == "from a thread");
    }
    ran = false;
    {
        onbeat::Thread left_alone(run, [&ran, owned = std::make_unique<bool>(true)] {
            ran = *owned;
        });
    }
    EXPECT(ran);
    // As a thread of POSIX may: what is on its stack is destroyed, and nothing is thrown.
    ran = false;
    onbeat::Thread leaves(run, [&ran] {
        const std::unique_ptr<bool, void (*)(bool *)> last(&ran, [](bool *at) { *at = true; });
        pthread_exit(nullptr);
    });
    MUST(leaves.join());
    EXPECT(ran);
    EXPECT(thrown_by([&] { static_cast<void>(leaves.join()); }).first == ONBEAT_E_ARGUMENT);
}

static void write_all(Context &run) {
    Talker<std::uint64_t> out(run, "c");
    Talker<std::int32_t> other(run, "e");
    Listener<Pair> in(run, "d");
    Time capture, allowed, woke;
    onbeat::Duration error{1};
    onbeat::Message info;
    Pair pair{};

    refusals(run, out);
    MUST(run.start());
    const long before = allocated();
    EXPECT(before > 0);

    MUST(out.write(0, &capture));
    EXPECT(out.try_write(9, &allowed) == Status::rate_exceeded && allowed > capture);
    MUST(out.write_at(1, Time(10ms), &capture));
    EXPECT(capture == Time(10ms));
    MUST(run.sleep_until(Time(15ms), &woke));
    EXPECT(woke == Time(15ms) && run.now() == woke);
    MUST(other.try_write(-5));
    MUST(run.work(5ms));
    EXPECT(run.now() == Time(20ms));
    MUST(out.write_wait(2, &capture, &error));
    EXPECT(capture == Time(20ms) && error == 0ns && run.now() == Time(22ms));

    MUST(run.sleep_until(Time(30ms)));
    MUST(onbeat::rendezvous(out, std::uint64_t{3}, in, pair, &info));
    EXPECT(pair.first == 7 && pair.second == 0.5 && info.sequence == 0);
    EXPECT(run.now() == Time(33ms) && info.capture == Time(31ms) && info.wakeup_error == 0ns);

    const std::uint64_t rest[] = {4, 5, 6};
    std::size_t written = 0;
    MUST(out.write_many(rest, 3, &written));
    EXPECT(written == 3 && out.try_write_many(rest, 3, &written) == Status::rate_exceeded);
    EXPECT(written == 0);
    EXPECT(allocated() == before);
    // A first meeting takes two messages: the second says that the other side was heard.
    EXPECT(out.counters().sent == 8 && out.counters().rate_exceeded > 0);

    threads(run);
    MUST(run.sleep_until(Time(80ms)));
    MUST(out.write(7));
    while (in.read(pair) == Status::ok)
        EXPECT(!"there is no second pair");
}

int main(int count, char **arguments) try {
    Context run;
    if (count > 1 && std::string(arguments[1]) == "left")
        write_all(run);
    else
        read_all(run);
    run.stop();
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", arguments[count - 1], error.what());
    return 1;
}
