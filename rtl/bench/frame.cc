#include "frame.h"

#include <algorithm>
#include <array>

namespace {

std::array<uint32_t, 256> make_table()
{
    std::array<uint32_t, 256> table{};
    for (uint32_t value = 0; value < 256; ++value) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; ++bit)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        table[value] = crc;
    }
    return table;
}

const std::array<uint32_t, 256> TABLE = make_table();
bool is_one(const std::array<uint8_t, 4> &codes, uint8_t octet)
{
    return std::find(codes.begin(), codes.end(), octet) != codes.end();
}

const std::array<uint8_t, 6> GROUP = {0x03, 0x4f, 0x42, 0x4e, 0x43, 0x00};

}  // namespace

uint32_t crc32(uint32_t crc, uint8_t octet)
{
    return TABLE[(crc ^ octet) & 0xff] ^ crc >> 8;
}

bool is_intact(const std::vector<uint8_t> &octets)
{
    uint32_t crc = 0xffffffff;
    for (uint8_t octet : octets)
        crc = crc32(crc, octet);
    return crc == 0xdebb20e3;
}

uint32_t check_sequence(const std::vector<uint8_t> &octets)
{
    uint32_t crc = 0xffffffff;
    for (uint8_t octet : octets)
        crc = crc32(crc, octet);
    return ~crc;
}

void append_check_sequence(std::vector<uint8_t> &octets)
{
    uint32_t check = check_sequence(octets);
    for (int shift = 0; shift < 32; shift += 8)
        octets.push_back(static_cast<uint8_t>(check >> shift));
}

Class class_of(const std::vector<uint8_t> &octets)
{
    size_t at = 12;
    auto ethertype = [&] { return octets[at] << 8 | octets[at + 1]; };
    if (octets.size() >= at + 2 && ethertype() == 0x8100)
        at += 4;
    if (octets.size() < at + 2 || !std::equal(GROUP.begin(), GROUP.end(), octets.begin()))
        return Class::BestEffort;
    return ethertype() == 0x88b5 || ethertype() == 0x88b6 ? Class::RealTime : Class::BestEffort;
}

uint64_t hash_of(const std::vector<uint8_t> &octets)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (uint8_t octet : octets)
        hash = (hash ^ octet) * 0x100000001b3;
    return hash;
}

bool Frame::good() const
{
    return started && !error && length >= LEAST_OCTETS && length <= MOST_OCTETS &&
           is_intact(octets);
}

bool Reassembly::take(const Frame &fragment, Frame &whole)
{
    bool first = !fragment.continuation;
    bool fits = first ? !open_
                      : open_ && fragment.continuation == SMD_CONTINUE[number_] &&
                            fragment.delimiter == SMD_START[next_];
    misfits_ += !fits;
    if (first) {
        octets_.clear();
        number_ = next_ = 0;
        while (number_ < 3 && SMD_START[number_] != fragment.delimiter)
            ++number_;
    } else if (!fits) {
        open_ = false;
        return false;
    } else {
        next_ = (next_ + 1) % 4;
    }
    open_ = false;
    if (fragment.error || fragment.octets.size() < 4) {
        misfits_ += !fragment.error;
        return false;
    }
    octets_.insert(octets_.end(), fragment.octets.begin(), fragment.octets.end() - 4);
    uint32_t check = 0;
    for (size_t at = 1; at <= 4; ++at)
        check = check << 8 | fragment.octets[fragment.octets.size() - at];
    uint32_t expected = check_sequence(octets_);
    if (check == (expected ^ 0x0000ffff)) {
        open_ = true;
        return false;
    }
    misfits_ += check != expected;
    if (check != expected)
        return false;
    whole = fragment;
    whole.octets = octets_;
    append_check_sequence(whole.octets);
    // By cycles of its sender: the last fragment has as many as its octets and the SFD.
    Femtoseconds cycle = (fragment.end - fragment.sfd) / (fragment.length + 1);
    whole.length = whole.octets.size();
    whole.sfd = fragment.end - cycle * (whole.length + 1);
    return true;
}

void Recorder::observe(Pins pins, Femtoseconds begin)
{
    if (each)
        each(pins, begin);
    if (pins.valid) {
        take(pins, begin);
    } else if (busy_) {
        busy_ = false;
        frame_.end = begin;
        if (done)
            done(frame_);
        idle_ = 1;
    } else {
        ++idle_;
    }
}

void Recorder::take(Pins pins, Femtoseconds begin)
{
    if (!busy_) {
        busy_ = true;
        frame_.octets.clear();
        frame_.length = frame_.preamble = 0;
        frame_.started = frame_.error = false;
        frame_.delimiter = frame_.continuation = 0;
        frame_.begin = begin;
        frame_.idle_before = idle_;
    }
    frame_.error = frame_.error || pins.error;
    frame_.error_at_end = pins.error;
    if (frame_.started) {
        if (frame_.octets.size() < KEPT_OCTETS)
            frame_.octets.push_back(pins.data);
        ++frame_.length;
    } else if (!frame_.continuation && is_one(SMD_CONTINUE, pins.data)) {
        frame_.continuation = pins.data;
        ++frame_.preamble;
    } else if (pins.data == START_OF_FRAME || is_one(SMD_START, pins.data)) {
        frame_.started = true;
        frame_.delimiter = pins.data;
        frame_.sfd = begin;
    } else {
        ++frame_.preamble;
    }
}
