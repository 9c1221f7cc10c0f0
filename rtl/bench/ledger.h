// What was sent, and what of it came where and when. Frames are told apart by all their octets.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "network.h"

// The octets of one wire between two instants.
struct Window {
    Direction *direction;
    Femtoseconds begin;
    Femtoseconds end;
    std::vector<std::pair<Femtoseconds, Pins>> pins;
};

struct Latency {
    uint64_t received = 0;
    uint64_t duplicates = 0;
    Femtoseconds min = ~Femtoseconds{0};
    Femtoseconds max = 0;
    double sum = 0;
    std::map<Femtoseconds, uint64_t> histogram;  // by the beginning of the bin

    void add(Femtoseconds value, Femtoseconds bin);
};

// All frames of one stream: of an injector's, or of a station.
struct Flow {
    Device *from;
    std::string name;
    Class type;
    uint64_t sent = 0;
    uint64_t octets = 0;
    std::map<const Device *, Latency> sinks;
};

// A frame on a wire, or what was left of one that was cut.
struct Passage {
    Femtoseconds begin;  // of the preamble
    uint64_t octets;     // with it
    bool cut;
    const Flow *flow;    // whose it is; none if nobody sent it so
};

// What one wire carried.
struct Wire {
    const Direction *direction = nullptr;
    uint64_t frames = 0;
    uint64_t real_time = 0;
    uint64_t octets = 0;          // with preambles
    uint64_t cut = 0;             // end with an error
    uint64_t bad = 0;             // otherwise no good frame
    uint64_t unknown = 0;         // complete, but nobody sent it
    uint64_t altered = 0;         // real time that nobody sent so
    uint64_t odd_preambles = 0;
    uint64_t least_gap = ~uint64_t{0};  // where one of both frames is best effort
    uint64_t least_real_time_gap = ~uint64_t{0};
    bool before_is_real_time = true;
    std::vector<Passage> log;     // of all that it carried, if that is kept
    uint64_t fragments = 0;       // of frames that were preempted, or may be
    Reassembly reassembly = {};
};

class Ledger {
public:
    Ledger(Network &network, Femtoseconds bin);
    // Frames of the device that begin from here on count.
    Flow &flow(Device &from, const std::string &name, Class type);
    // Keeps what is on the wires in these windows, which must outlive the simulation.
    static void record(std::vector<Window> &windows);
    // Keeps a log of each wire.
    void keep_log() { keeps_log_ = true; }
    bool keeps_log() const { return keeps_log_; }
    const std::vector<std::unique_ptr<Flow>> &flows() const { return flows_; }
    const std::vector<std::unique_ptr<Wire>> &wires() const { return wires_; }

private:
    struct Sent {
        Flow *flow;
        Femtoseconds sfd;
        uint64_t seen;  // a bit for each device
        bool error;     // sent with TX_ER
    };

    void leaves(Wire &wire, const Frame &frame);
    void comes(Wire &wire, const Frame &frame);
    void watch(Wire &wire, const Frame &frame);
    void log(Wire &wire, const Frame &frame);
    Flow *flow_of(Device &from, const std::vector<uint8_t> &octets, uint64_t hash);

    Femtoseconds bin_;
    bool keeps_log_ = false;
    std::vector<std::unique_ptr<Flow>> flows_;
    std::vector<std::unique_ptr<Wire>> wires_;
    std::unordered_map<uint64_t, Sent> sent_;
    std::map<const Device *, uint64_t> bit_;
};
