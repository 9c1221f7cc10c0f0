// The reading part of `calls`, and what counts its allocations.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "calls.hpp"

#include <atomic>

using namespace std::chrono_literals;
using onbeat::Status;
using onbeat::Time;

// `operator new` and the library call these.
static std::atomic<long> allocations;

extern "C" {
void *__libc_malloc(std::size_t size);
void *__libc_calloc(std::size_t count, std::size_t size);
void *__libc_realloc(void *old, std::size_t size);

void *malloc(std::size_t size) noexcept {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(std::size_t count, std::size_t size) noexcept {
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, std::size_t size) noexcept {
    allocations++;
    return __libc_realloc(old, size);
}
}

long allocated() { return allocations; }

void read_all(onbeat::Context &run) {
    onbeat::Listener<std::uint64_t> in(run, "c");
    onbeat::Listener<std::int32_t> other(run, "e");
    onbeat::Talker<Pair> out(run, "d");
    onbeat::Message info;
    std::uint64_t value = 77;
    std::int32_t small = 0;
    std::size_t index = 9;

    MUST(run.start());
    const long before = allocated();
    EXPECT(before > 0);

    EXPECT(in.try_read(value, &info) == Status::empty && value == 77 && info.latency == 0ns);
    EXPECT(in.read_timeout(value, 1us) == Status::timed_out && value == 77);
    EXPECT(run.select_for(1us, index, in, other) == Status::timed_out && index == 9);
    MUST(in.read(value, &info));
    EXPECT(value == 0 && info.sequence == 0 && info.gap == 0 && info.latency > 0ns);
    EXPECT(!info.late && !info.uncertain && !info.repeated);
    EXPECT(info.arrived == info.capture + info.latency && info.age >= info.latency);
    MUST(run.select(index, other, in));
    EXPECT(index == 1);
    MUST(in.try_read(value));
    EXPECT(value == 1);
    MUST(run.select(index, in, other));
    EXPECT(index == 1);
    MUST(other.read_timeout(small, 1s));
    EXPECT(small == -5);
    MUST(in.read_wait(value, &info));
    EXPECT(value == 2 && info.wakeup_error == 0ns && run.now() == info.capture + 2ms);

    MUST(run.sleep_until(Time(31ms)));
    MUST(onbeat::rendezvous(out, Pair{7, 0.5}, in, value, &info));
    EXPECT(value == 3 && run.now() == Time(33ms));

    EXPECT(!info.repeated);
    MUST(run.sleep_until(Time(60ms)));
    MUST(in.read_latest(value, &info));
    EXPECT(value == 6 && !info.repeated && info.age > 20ms);
    MUST(in.read_latest(value, &info));
    EXPECT(value == 6 && info.repeated);
    EXPECT(allocated() == before);

    EXPECT(thrown_by([&] { in.descriptor(); }).first == ONBEAT_E_REFUSED);
    const onbeat_listener *all[] = {other.native(), in.native()};
    MUST(run.select(index, all, 2, onbeat::Duration(-1)));
    EXPECT(index == 1);
    while (in.read(value) == Status::ok)
        EXPECT(value == 7);
    EXPECT(in.read(value) == Status::stopped);
    EXPECT(other.counters().received == 1 && out.counters().sent == 1);
}
