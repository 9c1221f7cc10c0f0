// Runs programs on the station in Verilog, and writes what it did in which cycle. It decides
// nothing: whoever calls it says what happens to the station, and compares.
//
// Standard input has cases, standard output an answer to each; both are numbers of 32 bits in the
// machine's order. A case:
//   cycles, tagged, address of the station (2 octets, 4 octets)
//   n, then n instructions: high half, low half
//   n, then n rows of the table of buffers; words of their memory, which are cleared
//   n, then n messages: identifier, row of the table
//   n, then n bursts on the receiving pins: first cycle, m, then m octets with rx_er in bit 8
//   n, then n frames of best effort that the host gives: not before cycle, m, then m octets
//   n, then n actions of the application, one behind the other: not before cycle, kind, what, m,
//   then m numbers. Kinds: 0 writes m words to buffer `what` and completes them, 1 sets all flags
//   to `what`, 2 sets the link to `what`, 3 reads m words by their indices from buffer `what`
// Cycle 0 is the first one in which the program runs. An answer is events, the last one of kind 0:
//   kind, cycle, a, b
#include "Vnc_station.h"
#include "verilated.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

enum Kind : uint32_t {
    END = 0,      // a: cycles
    FETCH = 1,
    ISSUE = 2,    // in cycle; a: address, b: trap | outcome << 4 | received << 8
    BRANCH = 3,   // of the last issue; a: taken
    ROUND = 4,    // a `sync slave` takes a frame
    STROBE = 5,   // a frame that begins a round has come
    COMMIT = 6,   // visible from cycle on; a: buffer, b: the action
    FLAGS = 7,    // visible from cycle on; a: flags
    LINK = 8,     // visible from cycle on; a: link
    READ = 9,     // as of cycle; a: buffer << 16 | index, b: value
    REFUSED = 10, // a: the kind of action
    OCTET = 11,   // on the pins; a: octet | tx_er << 8
    IDLE = 12,    // the first cycle behind a frame
    STORED = 13,  // a: whether it was the last word of its frame
    COUNTER = 14, // a: which, b: value
};

// From a write of a register to its effect, in cycles behind that of the request.
constexpr uint32_t FLAG_DELAY = 3;
// From what is read to the answer.
constexpr uint32_t READ_DELAY = 3;
// Before the end, in cycles: the pins of a stop, the last request given up, the last one begun.
// So every answer is there by then.
constexpr uint32_t STOP_DELAY = 3, QUIET = 8, LONGEST_REQUEST = 16;
// From the link's pin to the station.
constexpr uint32_t LINK_DELAY = 2;
// Words of the data buffers.
constexpr uint32_t MEMORY = 4096;
constexpr uint32_t COUNTERS = 19;

struct Burst { uint32_t at; std::vector<uint16_t> octets; };
struct Action { uint32_t at, kind, what; std::vector<uint32_t> numbers; };

uint32_t number() {
    uint32_t value;
    if (fread(&value, sizeof value, 1, stdin) != 1) {
        fprintf(stderr, "lockstep: a case ends early\n");
        exit(1);
    }
    return value;
}

class Bench {
public:
    Bench() : station(new Vnc_station) {
        station->rst = 1;
        for (int i = 0; i < 4; i++) step();
        station->rst = 0;
    }

    void run() {
        cycles = number();
        stop();
        load();
        read_bursts(bursts);
        read_bursts(best);
        burst = octet = best_frame = best_octet = 0;
        read_actions();
        start();
        for (; cycle < cycles; cycle++) {
            pins();
            host();
            application();
            settle();
            watch();
            edge();
        }
        // What was issued in the last cycle is shown behind it.
        settle();
        issue();
        counters();
        event(END, cycles, 0);
        fflush(stdout);
    }

private:
    std::unique_ptr<Vnc_station> station;
    uint32_t cycles = 0, cycle = 0;
    bool running = false;
    std::vector<Burst> bursts;
    size_t burst = 0, octet = 0;
    std::vector<Burst> best;
    size_t best_frame = 0, best_octet = 0;
    std::vector<Action> actions;
    size_t action = 0, part = 0;
    bool requested = false, was_sending = false, was_refused = false;
    std::vector<uint32_t> known;

    void event(uint32_t kind, uint32_t a, uint32_t b, uint32_t at) {
        uint32_t row[4] = {kind, at, a, b};
        fwrite(row, sizeof row, 1, stdout);
    }
    void event(uint32_t kind, uint32_t a, uint32_t b) { event(kind, a, b, cycle); }

    // A clock cycle begins with its edge; what is set behind that is seen at the next one.
    void edge() {
        station->clk = station->rx_clk = 1;
        station->eval();
    }
    void settle() {
        station->clk = station->rx_clk = 0;
        station->eval();
    }
    void step() { settle(); edge(); }

    uint32_t access(uint32_t address, bool write, uint32_t value) {
        station->bus_address = address;
        station->bus_write_data = value;
        station->bus_write = write;
        station->bus_read = !write;
        for (settle(); !station->bus_ready; settle()) edge();
        uint32_t read = station->bus_read_data;
        edge();
        station->bus_write = station->bus_read = 0;
        return read;
    }
    void write(uint32_t address, uint32_t value) { access(address, true, value); }

    void stop() {
        write(0x000002, 0);
        station->rx_dv = 0;
        station->best_tx_valid = 0;
        station->link_status = 0;
        // What the host gave stays there over a stop.
        station->rst = !best.empty();
        for (int i = 0; i < 40; i++) step();
        station->rst = 0;
    }

    void load() {
        write(0x000003, number());
        write(0x000004, number());
        write(0x000005, number());
        std::vector<uint32_t> words(2 * number());
        write(0x000006, uint32_t(words.size() / 2));
        for (uint32_t &half : words) half = number();
        uint32_t count = number();
        write(0x000007, count);
        for (uint32_t i = 0; i < count; i++) write(0x200000 | i, number());
        count = number();
        for (uint32_t i = 0; i < count; i++) {
            write(0x400000 | i, 0);
            write(0x400000 | i | MEMORY / 2, 0);
        }
        // All rows of messages at first, then only what the last program left.
        if (known.empty()) for (uint32_t id = 0; id < 256; id++) known.push_back(id);
        for (uint32_t id : known) write(0x300000 | id, 0);
        known.clear();
        count = number();
        for (uint32_t i = 0; i < count; i++) {
            known.push_back(number());
            write(0x300000 | known.back(), number());
        }
        known.push_back(0);
        // With the tables that are there now.
        for (uint32_t i = 0; i < words.size(); i++) write(0x100000 | i, words[i]);
    }

    static void read_bursts(std::vector<Burst> &bursts) {
        bursts.clear();
        for (uint32_t left = number(); left > 0; left--) {
            Burst next;
            next.at = number();
            for (uint32_t octets = number(); octets > 0; octets--)
                next.octets.push_back(uint16_t(number()));
            bursts.push_back(next);
        }
    }

    void read_actions() {
        actions.clear();
        action = part = 0;
        requested = false;
        for (uint32_t left = number(); left > 0; left--) {
            Action next;
            next.at = number();
            next.kind = number();
            next.what = number();
            for (uint32_t numbers = number(); numbers > 0; numbers--)
                next.numbers.push_back(number());
            actions.push_back(next);
        }
    }

    // Up to the first cycle in which the program runs.
    void start() {
        station->bus_address = 0x000002;
        station->bus_write_data = 1;
        station->bus_write = 1;
        for (settle(); !station->trace_runs; settle()) edge();
        // The answer to the access that started it is one cycle late.
        station->bus_write = 0;
        cycle = 0;
        was_sending = false;
    }

    void pins() {
        station->rx_dv = 0;
        station->rx_er = 0;
        station->rxd = 0;
        if (burst == bursts.size() || cycle < bursts[burst].at) return;
        uint16_t value = bursts[burst].octets[octet];
        station->rx_dv = 1;
        station->rx_er = value >> 8;
        station->rxd = uint8_t(value);
        if (++octet == bursts[burst].octets.size()) {
            octet = 0;
            burst++;
        }
    }

    void host() {
        station->best_tx_valid = best_frame < best.size() && cycle >= best[best_frame].at;
        if (!station->best_tx_valid) return;
        const std::vector<uint16_t> &octets = best[best_frame].octets;
        station->best_tx_octet = uint8_t(octets[best_octet]);
        station->best_tx_last = best_octet + 1 == octets.size();
    }

    // Of the action at hand a part at a time: a word, or the end of a write. The program is stopped
    // by the end of the last cycle; a request before that is over then, or given up.
    void application() {
        if (cycle + QUIET >= cycles) requested = false;
        if (requested) return;
        station->bus_write = station->bus_read = 0;
        if (cycle + STOP_DELAY >= cycles) {
            station->bus_address = 0x000002;
            station->bus_write_data = 0;
            station->bus_write = 1;
            return;
        }
        // The first three cycles still have the start's answer.
        bool may_begin = cycle > 2 && cycle + LONGEST_REQUEST < cycles && action < actions.size();
        if (may_begin && cycle >= actions[action].at) begin(actions[action]);
    }

    void begin(const Action &now) {
        bool reads = now.kind == 3;
        if (now.kind == 2) {
            station->link_status = now.what;
            event(LINK, now.what, 0, cycle + LINK_DELAY);
            action++;
            return;
        }
        requested = true;
        station->bus_read = reads;
        station->bus_write = !reads;
        if (now.kind == 1) {
            station->bus_address = 0x000008;
            station->bus_write_data = now.what;
            event(FLAGS, now.what, 0, cycle + FLAG_DELAY);
        } else if (now.kind == 0 && part == now.numbers.size()) {
            station->bus_address = 0x600000 | now.what;
        } else {
            // Each other write begins at the end: its first words are ahead of what `create` reads.
            size_t place = action % 2 == 0 ? part : now.numbers.size() - 1 - part;
            uint32_t index = reads ? now.numbers[part] : uint32_t(place);
            station->bus_address = 0x500000 | now.what << 9 | index;
            station->bus_write_data = reads ? 0 : now.numbers[place];
        }
    }

    void answered() {
        const Action &now = actions[action];
        requested = false;
        part++;
        // A write is over when its words have been made complete, too.
        bool is_over = now.kind == 1 || part > now.numbers.size()
            || (now.kind == 3 && part == now.numbers.size());
        if (is_over) {
            action++;
            part = 0;
        }
    }

    void issue() {
        if (!station->trace_issue) return;
        uint32_t came = station->trace_trap | station->trace_outcome << 4
            | station->trace_receive << 8;
        event(ISSUE, station->trace_address, came, cycle - 1);
    }

    void watch() {
        if (station->best_tx_valid && station->best_tx_ready
            && ++best_octet == best[best_frame].octets.size()) {
            best_octet = 0;
            best_frame++;
        }
        if (station->trace_fetch) event(FETCH, 0, 0);
        issue();
        if (station->trace_branch) event(BRANCH, station->trace_taken, 0);
        if (station->trace_synchronised) event(ROUND, 0, 0);
        if (station->trace_strobe) event(STROBE, 0, 0);
        if (station->trace_stored) event(STORED, station->trace_stored_last, 0);
        if (station->trace_committed)
            event(COMMIT, actions[action].what, uint32_t(action), cycle + 1);
        if (station->tx_en) event(OCTET, station->txd | station->tx_er << 8, 0);
        else if (was_sending) event(IDLE, 0, 0);
        was_sending = station->tx_en;
        if (requested && station->bus_ready) {
            const Action &now = actions[action];
            if (was_refused) {
                event(REFUSED, now.kind, uint32_t(action));
                part = now.numbers.size();
            } else if (now.kind == 3) {
                event(READ, now.what << 16 | now.numbers[part], station->bus_read_data,
                    cycle - READ_DELAY);
            }
            answered();
        }
        // It is answered in the next cycle.
        was_refused = station->trace_refused;
    }

    void counters() {
        station->bus_write = station->bus_read = 0;
        // Up to the answer of the stop.
        for (uint32_t i = 0; i < 4; i++) step();
        for (uint32_t i = 0; i < COUNTERS; i++) event(COUNTER, i, access(0x000020 | i, false, 0));
    }
};

} // namespace

int main(int argc, char **argv) {
    Verilated::commandArgs(argc, argv);
    Bench bench;
    for (int next = getchar(); next != EOF; next = getchar()) {
        ungetc(next, stdin);
        bench.run();
    }
    return 0;
}
