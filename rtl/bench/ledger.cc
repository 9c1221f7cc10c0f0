#include "ledger.h"

#include <algorithm>

#include "injector.h"

void Latency::add(Femtoseconds value, Femtoseconds bin)
{
    ++received;
    min = std::min(min, value);
    max = std::max(max, value);
    sum += static_cast<double>(value);
    ++histogram[value / bin * bin];
}

// A device with one port is an end of the network.
Ledger::Ledger(Network &network, Femtoseconds bin) : bin_(bin)
{
    for (auto &direction : network.directions()) {
        wires_.push_back(std::make_unique<Wire>());
        Wire &wire = *wires_.back();
        wire.direction = direction.get();
        bit_.emplace(direction->to, uint64_t{1} << bit_.size() % 64);
        direction->recorder.done = [this, &wire](const Frame &frame) {
            watch(wire, frame);
            if (wire.direction->from->ports == 1)
                leaves(wire, frame);
            Frame whole;
            if (wire.direction->to->ports == 1 && !frame.is_fragment())
                comes(wire, frame);
            else if (frame.is_fragment() && wire.reassembly.take(frame, whole) &&
                     wire.direction->to->ports == 1)
                comes(wire, whole);
            if (keeps_log_)
                log(wire, frame);
        };
    }
}

void Ledger::record(std::vector<Window> &windows)
{
    for (Window &window : windows)
        window.direction->recorder.each = [&window](Pins pins, Femtoseconds begin) {
            if (begin >= window.begin && begin < window.end)
                window.pins.emplace_back(begin, pins);
        };
}

Flow &Ledger::flow(Device &from, const std::string &name, Class type)
{
    for (auto &flow : flows_)
        if (flow->from == &from && flow->name == name)
            return *flow;
    flows_.push_back(std::make_unique<Flow>(Flow{&from, name, type, 0, 0, {}}));
    return *flows_.back();
}

Flow *Ledger::flow_of(Device &from, const std::vector<uint8_t> &octets, uint64_t hash)
{
    auto *injector = dynamic_cast<Injector *>(&from);
    if (!injector)
        return &flow(from, "station", class_of(octets));
    const Stream *stream = injector->stream_of(hash);
    return stream ? &flow(from, stream->name, stream->type) : nullptr;
}

void Ledger::leaves(Wire &wire, const Frame &frame)
{
    uint64_t hash = hash_of(frame.octets);
    Flow *flow = flow_of(*wire.direction->from, frame.octets, hash);
    if (!flow)
        return;
    ++flow->sent;
    flow->octets += frame.length;
    // Another one may be there by a cable without delay: what comes is looked up at its end.
    sent_[hash] = {flow, frame.sfd, 0, frame.error};
}

void Ledger::comes(Wire &wire, const Frame &frame)
{
    auto found = sent_.find(hash_of(frame.octets));
    if (found == sent_.end() || frame.error != found->second.error) {
        // What was cut is no frame.
        if (frame.error_at_end)
            return;
        ++wire.unknown;
        wire.altered += class_of(frame.octets) == Class::RealTime;
        return;
    }
    Sent &sent = found->second;
    const Device *to = wire.direction->to;
    Latency &latency = sent.flow->sinks[to];
    if (sent.seen & bit_[to]) {
        ++latency.duplicates;
        return;
    }
    sent.seen |= bit_[to];
    latency.add(frame.sfd + wire.direction->delay - sent.sfd, bin_);
}

void Ledger::log(Wire &wire, const Frame &frame)
{
    auto found = sent_.find(hash_of(frame.octets));
    const Flow *flow = found == sent_.end() ? nullptr : found->second.flow;
    uint64_t octets = frame.length + frame.preamble + frame.started;
    wire.log.push_back({frame.begin, octets, frame.error_at_end, flow});
}

void Ledger::watch(Wire &wire, const Frame &frame)
{
    bool real_time = !frame.is_fragment() && class_of(frame.octets) == Class::RealTime;
    bool both = real_time && wire.before_is_real_time;
    uint64_t &least = both ? wire.least_real_time_gap : wire.least_gap;
    if (wire.frames)
        least = std::min(least, frame.idle_before);
    wire.before_is_real_time = real_time;
    ++wire.frames;
    wire.real_time += real_time;
    wire.octets += frame.length + frame.preamble + frame.started;
    wire.cut += frame.error_at_end;
    wire.fragments += frame.is_fragment();
    wire.bad += !frame.is_fragment() && !frame.good() && !frame.error_at_end;
    wire.odd_preambles += frame.preamble != PREAMBLE_OCTETS || !frame.started;
}
