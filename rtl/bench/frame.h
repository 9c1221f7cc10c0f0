// Frames on a wire, octet by octet: check sequences, what a recorder sees.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Of true time. 64 bits last for five hours.
using Femtoseconds = uint64_t;
constexpr Femtoseconds CYCLE = 8'000'000;  // nominal, of 125 MHz

// One direction of a GMII in one cycle.
struct Pins {
    uint8_t data = 0;
    bool valid = false;
    bool error = false;
};

constexpr uint8_t PREAMBLE = 0x55;
constexpr uint8_t START_OF_FRAME = 0xd5;
constexpr unsigned PREAMBLE_OCTETS = 7;
// Of IEEE 802.3br: SMD-S, which are also fragment counts, and SMD-C, by their number.
constexpr std::array<uint8_t, 4> SMD_START = {0xe6, 0x4c, 0x7f, 0xb3};
constexpr std::array<uint8_t, 4> SMD_CONTINUE = {0x61, 0x52, 0x9e, 0x2a};
constexpr unsigned GAP = 12;
constexpr unsigned LEAST_OCTETS = 64;
constexpr unsigned MOST_OCTETS = 1522;
// A recorder keeps no more octets of a frame; it counts on.
constexpr size_t KEPT_OCTETS = 16'384;

enum class Class : uint8_t { BestEffort, RealTime };

uint32_t crc32(uint32_t crc, uint8_t octet);
// Whether the check sequence at the end of the octets is right.
bool is_intact(const std::vector<uint8_t> &octets);
// The check sequence of these octets, as a number whose lowest octet leaves first.
uint32_t check_sequence(const std::vector<uint8_t> &octets);
void append_check_sequence(std::vector<uint8_t> &octets);
// By destination and (inner) EtherType, which may be missing of a short frame.
Class class_of(const std::vector<uint8_t> &octets);
uint64_t hash_of(const std::vector<uint8_t> &octets);

// What was on one wire from the first cycle with data to the last.
struct Frame {
    std::vector<uint8_t> octets;  // behind the start-of-frame octet
    size_t length = 0;            // of them, also of those not kept
    unsigned preamble = 0;        // octets before the start-of-frame octet
    bool started = false;         // there was one
    uint8_t delimiter = 0;        // the octet before these, and that before it if it is an SMD-C
    uint8_t continuation = 0;
    bool error = false;           // in any octet
    bool error_at_end = false;    // in the last one
    Femtoseconds begin = 0;       // of the first octet on the sender's pins
    Femtoseconds sfd = 0;         // of the start-of-frame octet
    Femtoseconds end = 0;         // the first cycle without data
    uint64_t idle_before = 0;     // cycles

    bool is_fragment() const { return started && delimiter != START_OF_FRAME; }
    bool good() const;
};

// Puts the fragments of one wire's preempted frames together.
class Reassembly {
public:
    // Takes a fragment. Whether a frame is complete, which it then gives: its SFD is where it would
    // have been if the frame had come in one piece with the same end.
    bool take(const Frame &fragment, Frame &whole);
    uint64_t misfits() const { return misfits_; }

private:
    std::vector<uint8_t> octets_;
    bool open_ = false;
    uint8_t number_ = 0;
    uint8_t next_ = 0;
    uint64_t misfits_ = 0;
};

// Watches a wire; gives each frame to whoever wants it when the wire is idle again.
class Recorder {
public:
    void observe(Pins pins, Femtoseconds begin);
    bool busy() const { return busy_; }

    std::function<void(const Frame &)> done;
    // Every cycle, if somebody wants to know.
    std::function<void(Pins, Femtoseconds)> each;

private:
    void take(Pins pins, Femtoseconds begin);

    Frame frame_;
    bool busy_ = false;
    uint64_t idle_ = 1'000'000;
};
