#include "injector.h"

#include <algorithm>

namespace {

constexpr uint64_t RT_GROUP = 0x034f424e4300;

void put(std::vector<uint8_t> &octets, uint64_t value, unsigned count)
{
    while (count--)
        octets.push_back(static_cast<uint8_t>(value >> 8 * count));
}

}  // namespace

// splitmix64.
uint64_t Injector::draw(uint64_t below)
{
    uint64_t z = random_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return below ? z % below : z;
}

void Injector::add(Stream stream)
{
    stream.due = stream.start;
    streams_.push_back(std::move(stream));
}

// The octets behind the start-of-frame octet: header, a number that no other frame has, noise.
std::vector<uint8_t> Injector::make(Stream &stream)
{
    unsigned length = stream.length;
    if (stream.most_length > length)
        length += static_cast<unsigned>(draw(stream.most_length - length + 1));
    std::vector<uint8_t> octets;
    bool real_time = stream.type == Class::RealTime;
    put(octets, real_time ? RT_GROUP : stream.destination, 6);
    put(octets, stream.source, 6);
    if (stream.tagged)
        put(octets, 0x8100e000, 4);
    unsigned header = stream.tagged ? 18 : 14;
    if (real_time) {
        unsigned words = length > header + 8 ? (length - header - 8) / 4 : 0;
        put(octets, stream.sync ? 0x88b6 : 0x88b5, 2);
        put(octets, stream.sync ? 1 : std::min(words, 374u), 4);
    } else {
        put(octets, 0x88b7, 2);
    }
    put(octets, stream.sent, 8);
    while (octets.size() + 4 < length)
        octets.push_back(static_cast<uint8_t>(draw(256)));
    octets.resize(length > 4 ? length - 4 : 0);
    append_check_sequence(octets);
    octets.resize(length);
    if (stream.fault == Fault::CheckSequence)
        octets.back() ^= 1;
    stream_of_[hash_of(octets)] = static_cast<size_t>(&stream - streams_.data());
    return octets;
}

const Stream *Injector::stream_of(uint64_t hash) const
{
    auto found = stream_of_.find(hash);
    return found == stream_of_.end() ? nullptr : &streams_[found->second];
}

void Injector::schedule(Stream &stream)
{
    uint64_t number = stream.sent + stream.missed;
    stream.due = stream.start + stream.interval_millicycles * number / 1000;
    if (stream.jitter)
        stream.due += draw(stream.jitter);
}

// The stream whose frame has waited longest; real time is first of equals.
Stream *Injector::due()
{
    Stream *first = nullptr;
    for (Stream &stream : streams_) {
        while (stream.exact && stream.due < cycle_) {
            ++stream.missed;
            schedule(stream);
        }
        if (stream.due > cycle_ || (stream.count && stream.sent + stream.missed >= stream.count))
            continue;
        bool before = first && (stream.due < first->due ||
                                (stream.due == first->due && stream.type == Class::RealTime));
        if (!first || before)
            first = &stream;
    }
    return first;
}

void Injector::begin(Stream &stream)
{
    std::vector<uint8_t> octets = make(stream);
    uint8_t first = stream.fault == Fault::NoPreamble ? 0xaa : PREAMBLE;
    wire_.assign(stream.preamble, first);
    wire_.push_back(START_OF_FRAME);
    wire_.insert(wire_.end(), octets.begin(), octets.end());
    at_ = 0;
    error_at_ = stream.fault == Fault::Error ? stream.preamble + 1 + octets.size() / 2 : 0;
    endless_ = stream.fault == Fault::Endless;
    gap_ = stream.gap;
    ++stream.sent;
    schedule(stream);
}

void Injector::evaluate(bool own, Femtoseconds now)
{
    if (!own)
        return;
    bool stopped = now >= stop_;
    if (at_ == wire_.size() && endless_ && !stopped) {
        // Real octets, so that a store-and-forward device has to decide by length alone.
        pins_ = {static_cast<uint8_t>(draw(256)), true, false};
    } else if (at_ < wire_.size()) {
        pins_ = {wire_[at_], true, error_at_ && at_ == error_at_};
        ++at_;
    } else {
        endless_ = false;
        pins_ = {};
        ++idle_;
    }
    if (pins_.valid)
        idle_ = 0;
    ++cycle_;
    // What is decided here is on the pins from the next edge on.
    if (!endless_ && at_ == wire_.size() && idle_ >= gap_ && !stopped)
        if (Stream *stream = due())
            begin(*stream);
}
