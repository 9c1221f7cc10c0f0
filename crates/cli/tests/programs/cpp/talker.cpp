// The talker of examples/01-two-hosts, in C++: what it records must be the same.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <onbeat.hpp>

#include <cstdio>

using namespace std::chrono_literals;

int main() try {
    onbeat::Context run;
    onbeat::Talker<std::uint64_t> counter(run, "mcast42");

    auto status = run.start();
    for (std::uint64_t i = 0; status == onbeat::Status::ok; i++) {
        status = counter.write_wait(i);
        if (status == onbeat::Status::ok)
            status = run.sleep_until(onbeat::Time((i + 1) * 20ms));
    }
    return 0;
} catch (const onbeat::Error &error) {
    std::fprintf(stderr, "talker: %s\n", error.what());
    return 1;
}
