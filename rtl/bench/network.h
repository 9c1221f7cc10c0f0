// Devices with oscillators of their own, joined by links; advances from one clock edge to the next.
//
// An output that is on a device's pins in its cycle k was set by its edge k and is sampled by the
// partner's receive clock, which is edge k + 1 of the sender, late by the link's delay. With one
// clock and a delay of L cycles an octet on the pins in cycle k is on the partner's in cycle k + L.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "frame.h"

class Device {
public:
    Device(std::string name, unsigned ports) : name(std::move(name)), ports(ports) {}
    virtual ~Device() = default;

    // An edge of a port's receive clock, evaluated next, with what it samples.
    virtual void receive(unsigned, Pins) {}
    // All edges of this instant; `own` if the device's own clock has one.
    virtual void evaluate(bool own, Femtoseconds now) = 0;
    virtual Pins pins(unsigned port) const = 0;
    // Whether it wants to know what comes; what only records does not.
    virtual bool receives() const { return false; }

    const std::string name;
    const unsigned ports;
    Femtoseconds period = CYCLE;
    Femtoseconds phase = 0;
};

struct Direction {
    Device *from;
    unsigned from_port;
    Device *to;
    unsigned to_port;
    Femtoseconds delay;
    Recorder recorder;
};

class Network {
public:
    Device &add(std::unique_ptr<Device> device);
    Device *find(const std::string &name) const;
    // Joins two ports in both directions.
    void link(Device &a, unsigned a_port, Device &b, unsigned b_port, Femtoseconds delay);
    // A receive clock of a wire that has been idle for so many cycles stands still; 0 for never.
    void set_idle_limit(uint64_t cycles) { idle_limit_ = cycles; }
    // Once, when all is there.
    void start();
    // Up to an instant, which is not reached.
    void run(Femtoseconds until);

    const std::vector<std::unique_ptr<Device>> &devices() const { return devices_; }
    std::vector<std::unique_ptr<Direction>> &directions() { return directions_; }
    Femtoseconds now() const { return now_; }
    uint64_t edges() const { return edges_; }

private:
    struct Sample {
        Femtoseconds at;
        Pins pins;
    };
    struct Queue {
        std::deque<Sample> samples;
        uint64_t idle = 0;
    };

    void leave(size_t device);
    void arrive(size_t wire);

    std::vector<std::unique_ptr<Device>> devices_;
    std::vector<std::unique_ptr<Direction>> directions_;
    std::vector<Queue> wires_;                 // beside directions_
    std::vector<std::vector<size_t>> leaving_;  // directions from each device
    std::vector<size_t> target_;               // index of the device of each direction
    // Next edge of each device, then next sample of each direction.
    std::vector<Femtoseconds> next_;
    std::vector<char> dirty_;
    std::vector<char> own_;
    Femtoseconds now_ = 0;
    uint64_t idle_limit_ = 0;
    uint64_t edges_ = 0;
};
