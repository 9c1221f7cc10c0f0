// A port that sends what its streams say: best effort, real time, and what no station should send.
#pragma once

#include <unordered_map>

#include "network.h"

enum class Fault : uint8_t {
    None,
    CheckSequence,  // the check sequence is wrong
    Error,          // the middle octet is sent with TX_ER
    Endless,        // no end
    NoPreamble,     // begins with something else
};

// All counts in cycles of the port's own clock; intervals in thousandths, for exact rates.
struct Stream {
    std::string name;
    Class type = Class::BestEffort;
    unsigned length = 1000;      // octets with check sequence
    unsigned most_length = 0;    // drawn up to this one, if it is not 0
    uint64_t interval_millicycles = 0;
    uint64_t start = 0;          // cycle of the first octet of the preamble
    uint64_t count = 0;          // 0: no end
    uint64_t jitter = 0;         // drawn delay of each frame
    uint64_t destination = 0xffffffffffff;
    uint64_t source = 0;
    unsigned preamble = PREAMBLE_OCTETS;
    unsigned gap = GAP;          // kept behind each frame
    bool sync = false;           // begins a round
    bool tagged = false;
    bool exact = false;          // a frame that cannot begin in its cycle is not sent, but counted
    Fault fault = Fault::None;

    uint64_t sent = 0;
    uint64_t missed = 0;
    uint64_t due = 0;            // of the next frame
};

class Injector : public Device {
public:
    Injector(std::string name, uint64_t seed) : Device(std::move(name), 1), random_(seed) {}

    void add(Stream stream);
    // None begins from this instant on; endless ones end.
    void stop_at(Femtoseconds at) { stop_ = at; }
    void evaluate(bool own, Femtoseconds now) override;
    Pins pins(unsigned) const override { return pins_; }
    const std::vector<Stream> &streams() const { return streams_; }
    // Whose frame has octets of this hash; none if no frame has.
    const Stream *stream_of(uint64_t hash) const;

private:
    Stream *due();
    void begin(Stream &stream);
    void schedule(Stream &stream);
    std::vector<uint8_t> make(Stream &stream);
    uint64_t draw(uint64_t below);

    std::vector<Stream> streams_;
    std::unordered_map<uint64_t, size_t> stream_of_;
    std::vector<uint8_t> wire_;    // what is being sent, with its preamble
    size_t at_ = 0;
    size_t error_at_ = 0;          // index with TX_ER; 0: none
    bool endless_ = false;
    unsigned gap_ = 0;
    uint64_t idle_ = 1'000;        // cycles since the last octet
    uint64_t cycle_ = 0;
    Femtoseconds stop_ = ~Femtoseconds{0};
    uint64_t random_;
    Pins pins_;
};
