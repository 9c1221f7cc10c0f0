// The listener of examples/01-two-hosts, in C++: what it records must be the same.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <onbeat.hpp>

#include <cstdio>

int main() try {
    onbeat::Context run;
    onbeat::Listener<std::uint64_t> counter(run, "mcast42");
    onbeat::Message message;
    std::uint64_t value = 0;

    if (run.start() != onbeat::Status::ok)
        return 0;
    while (counter.read_wait(value, &message) == onbeat::Status::ok)
        if (value != message.sequence)
            return 1;
    return 0;
} catch (const onbeat::Error &error) {
    std::fprintf(stderr, "listener: %s\n", error.what());
    return 1;
}
