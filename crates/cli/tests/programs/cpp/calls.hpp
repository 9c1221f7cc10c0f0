// What the two files of the program `calls` share. SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once

#include <onbeat.hpp>
// Twice is once.
#include <onbeat.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

// Messages of `d`.
struct Pair {
    std::uint64_t first;
    double second;
};

inline void expect(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "does not hold: %s\n", what);
        std::exit(EXIT_FAILURE);
    }
}

#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__)
#define MUST(...) EXPECT((__VA_ARGS__) == onbeat::Status::ok)

// The status and the text of the Error that `call` throws.
template <class Call> std::pair<onbeat_status, std::string> thrown_by(Call call) {
    try {
        call();
    } catch (const onbeat::Error &error) {
        return {error.status(), error.what()};
    }
    return {ONBEAT_OK, ""};
}

// How often this program has asked for memory.
long allocated();

void read_all(onbeat::Context &run);
