// A channel on the interface `lo`, without a run. Exits with 77 where it may not use it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "calls.hpp"

#include <poll.h>

using namespace std::chrono_literals;

static const onbeat::Interface lo{"lo", onbeat::Transport::packet, ONBEAT_UNTAGGED};

static onbeat::Channel channel() {
    onbeat::Channel channel;
    channel.name = "pairs";
    channel.destination = {0x01, 0x00, 0x5e, 0x0c, 0x99, 0x01};
    channel.stream_id = 0xc99;
    channel.size = sizeof(Pair);
    channel.interval = 1ms;
    return channel;
}

int main() try {
    const auto [status, why] = thrown_by([] { onbeat::Context{onbeat::Interface{"no-such-0"}}; });
    EXPECT(status == ONBEAT_E_NETWORK && why.find("no-such-0") != std::string::npos);

    onbeat::Context context(lo);
    EXPECT(thrown_by([&] { context.declare({}); }).first == ONBEAT_E_REFUSED);
    context.declare(channel());
    EXPECT(thrown_by([&] { context.declare(channel()); }).first == ONBEAT_E_REFUSED);

    onbeat::Talker<Pair> out(context, "pairs");
    onbeat::Listener<Pair> in(context, "pairs");
    onbeat::Time capture;
    onbeat::Message info;
    Pair pair{};

    MUST(out.write({1, 0.25}, &capture));
    pollfd readable{in.descriptor(), POLLIN, 0};
    auto got = onbeat::Status::empty;
    while (got == onbeat::Status::empty) {
        EXPECT(poll(&readable, 1, -1) == 1);
        got = in.try_read(pair, &info);
    }
    MUST(got);
    EXPECT(pair.first == 1 && pair.second == 0.25 && info.capture == capture);
    EXPECT(info.latency > 0ns && context.now() > capture);
    context.stop();
    EXPECT(in.read(pair) == onbeat::Status::stopped);
    return 0;
} catch (const onbeat::Error &error) {
    std::fprintf(stderr, "interface: %s\n", error.what());
    return error.status() == ONBEAT_E_NETWORK ? 77 : 1;
}
