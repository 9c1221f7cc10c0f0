#include "network.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace {
constexpr Femtoseconds NEVER = std::numeric_limits<Femtoseconds>::max();
}

Device &Network::add(std::unique_ptr<Device> device)
{
    devices_.push_back(std::move(device));
    return *devices_.back();
}

Device *Network::find(const std::string &name) const
{
    for (const auto &device : devices_)
        if (device->name == name)
            return device.get();
    return nullptr;
}

void Network::link(Device &a, unsigned a_port, Device &b, unsigned b_port, Femtoseconds delay)
{
    for (const auto &other : directions_)
        if ((other->from == &a && other->from_port == a_port) ||
            (other->from == &b && other->from_port == b_port))
            throw std::runtime_error("a port has two links: " + a.name + ", " + b.name);
    if (a_port >= a.ports || b_port >= b.ports)
        throw std::runtime_error("no such port: " + a.name + ", " + b.name);
    auto add = [&](Device &from, unsigned from_port, Device &to, unsigned to_port) {
        directions_.push_back(
            std::make_unique<Direction>(Direction{&from, from_port, &to, to_port, delay, {}}));
    };
    add(a, a_port, b, b_port);
    add(b, b_port, a, a_port);
}

void Network::start()
{
    leaving_.resize(devices_.size());
    wires_.resize(directions_.size());
    next_.assign(devices_.size() + directions_.size(), NEVER);
    dirty_.assign(devices_.size(), 0);
    own_.assign(devices_.size(), 0);
    auto index = [&](const Device *device) {
        size_t i = 0;
        while (devices_[i].get() != device)
            ++i;
        return i;
    };
    for (size_t i = 0; i < devices_.size(); ++i)
        next_[i] = devices_[i]->phase;
    for (size_t i = 0; i < directions_.size(); ++i) {
        leaving_[index(directions_[i]->from)].push_back(i);
        target_.push_back(index(directions_[i]->to));
    }
}

// The cycle that this edge ends is sampled by the partners.
void Network::leave(size_t device)
{
    const Device &from = *devices_[device];
    Femtoseconds begin = now_ - std::min(now_, from.period);
    for (size_t index : leaving_[device]) {
        Direction &direction = *directions_[index];
        Queue &wire = wires_[index];
        Pins pins = from.pins(direction.from_port);
        direction.recorder.observe(pins, begin);
        wire.idle = pins.valid || pins.error ? 0 : wire.idle + 1;
        if (!direction.to->receives() || (idle_limit_ && wire.idle > idle_limit_))
            continue;
        wire.samples.push_back({now_ + direction.delay, pins});
        next_[devices_.size() + index] = wire.samples.front().at;
    }
    next_[device] = now_ + from.period;
    dirty_[device] = own_[device] = 1;
}

void Network::arrive(size_t wire)
{
    auto &samples = wires_[wire].samples;
    const Direction &direction = *directions_[wire];
    direction.to->receive(direction.to_port, samples.front().pins);
    samples.pop_front();
    next_[devices_.size() + wire] = samples.empty() ? NEVER : samples.front().at;
    dirty_[target_[wire]] = 1;
}

void Network::run(Femtoseconds until)
{
    const size_t count = devices_.size();
    for (;;) {
        Femtoseconds soonest = NEVER;
        for (Femtoseconds at : next_)
            soonest = std::min(soonest, at);
        if (soonest >= until)
            return;
        now_ = soonest;
        // First what leaves: over a link without delay it is sampled at this very instant.
        for (size_t i = 0; i < count; ++i)
            if (next_[i] == now_)
                leave(i);
        for (size_t i = 0; i < wires_.size(); ++i)
            if (next_[count + i] == now_)
                arrive(i);
        for (size_t i = 0; i < count; ++i) {
            if (!dirty_[i])
                continue;
            devices_[i]->evaluate(own_[i], now_);
            edges_ += own_[i];
            dirty_[i] = own_[i] = 0;
        }
    }
}
