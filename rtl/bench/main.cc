// Simulates a network as standard input says, and writes what came of it as JSON.

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <iostream>

#include "ledger.h"
#include "scenario.h"

namespace {

// After the streams, registers may be read for so long.
constexpr Femtoseconds LAST_ACCESSES = 4'000 * CYCLE;

// Separates the members of an object or array.
class Commas {
public:
    const char *next()
    {
        const char *before = first_ ? "" : ", ";
        first_ = false;
        return before;
    }

private:
    bool first_ = true;
};

void print_latency(const Device &sink, const Latency &latency)
{
    double mean = latency.received ? latency.sum / static_cast<double>(latency.received) : 0;
    printf("\"%s\": {\"received\": %" PRIu64 ", \"duplicates\": %" PRIu64 ", \"min_fs\": %" PRIu64
           ", \"max_fs\": %" PRIu64 ", \"mean_fs\": %.0f, \"histogram\": {",
           sink.name.c_str(), latency.received, latency.duplicates,
           latency.received ? latency.min : 0, latency.max, mean);
    Commas commas;
    for (auto [bin, count] : latency.histogram)
        printf("%s\"%" PRIu64 "\": %" PRIu64, commas.next(), bin, count);
    printf("}}");
}

void print_flows(const Ledger &ledger)
{
    printf("\"flows\": [");
    Commas flows;
    for (const auto &flow : ledger.flows()) {
        printf("%s\n  {\"from\": \"%s\", \"name\": \"%s\", \"type\": \"%s\", \"sent\": %" PRIu64
               ", \"octets\": %" PRIu64 ", \"sinks\": {",
               flows.next(), flow->from->name.c_str(), flow->name.c_str(),
               flow->type == Class::RealTime ? "real-time" : "best-effort", flow->sent,
               flow->octets);
        Commas sinks;
        for (const auto &[sink, latency] : flow->sinks) {
            printf("%s", sinks.next());
            print_latency(*sink, latency);
        }
        printf("}}");
    }
    printf("],\n");
}

void print_gap(const char *name, uint64_t gap)
{
    if (gap != ~uint64_t{0})
        printf(", \"%s\": %" PRIu64, name, gap);
}

void print_wires(const Ledger &ledger)
{
    printf("\"wires\": [");
    Commas commas;
    for (const auto &wire : ledger.wires()) {
        const Direction &direction = *wire->direction;
        printf("%s\n  {\"from\": \"%s\", \"port\": %u, \"to\": \"%s\", \"frames\": %" PRIu64
               ", \"real_time\": %" PRIu64 ", \"octets\": %" PRIu64 ", \"cut\": %" PRIu64
               ", \"bad\": %" PRIu64 ", \"unknown\": %" PRIu64 ", \"altered\": %" PRIu64
               ", \"odd_preambles\": %" PRIu64,
               commas.next(), direction.from->name.c_str(), direction.from_port,
               direction.to->name.c_str(), wire->frames, wire->real_time, wire->octets, wire->cut,
               wire->bad, wire->unknown, wire->altered, wire->odd_preambles);
        printf(", \"fragments\": %" PRIu64 ", \"misfits\": %" PRIu64, wire->fragments,
               wire->reassembly.misfits());
        print_gap("least_gap", wire->least_gap);
        print_gap("least_real_time_gap", wire->least_real_time_gap);
        printf("}");
    }
    printf("],\n");
}

void print_times(const char *name, const std::vector<Femtoseconds> &times)
{
    printf(", \"%s\": [", name);
    Commas commas;
    for (Femtoseconds time : times)
        printf("%s%" PRIu64, commas.next(), time);
    printf("]");
}

void print_devices(const Scenario &scenario)
{
    printf("\"devices\": [");
    Commas commas;
    for (size_t i = 0; i < scenario.buses.size(); ++i) {
        printf("%s\n  {\"name\": \"%s\", \"registers\": {", commas.next(),
               scenario.bus_names[i].c_str());
        Commas registers;
        for (const Access &access : scenario.buses[i]->answers())
            printf("%s\"%s\": %u", registers.next(), access.name.c_str(), access.value);
        printf("}");
        print_times("issued_fs", scenario.buses[i]->strobes().issued);
        print_times("stored_fs", scenario.buses[i]->strobes().stored);
        printf("}");
    }
    printf("],\n\"missed\": {");
    Commas missed;
    for (const Injector *injector : scenario.injectors)
        for (const Stream &stream : injector->streams())
            if (stream.exact)
                printf("%s\"%s/%s\": %" PRIu64, missed.next(), injector->name.c_str(),
                       stream.name.c_str(), stream.missed);
    printf("},\n");
}

void print_windows(const Scenario &scenario)
{
    printf("\"windows\": [");
    Commas commas;
    for (const Window &window : scenario.windows) {
        printf("%s\n  {\"from\": \"%s\", \"port\": %u, \"pins\": [", commas.next(),
               window.direction->from->name.c_str(), window.direction->from_port);
        Commas pins;
        for (const auto &[at, value] : window.pins)
            printf("%s[%" PRIu64 ", %u, %d, %d]", pins.next(), at, value.data, value.valid,
                   value.error);
        printf("]}");
    }
    printf("],\n");
}

// Of each wire a list of begin, octets with the preamble, whether it was cut, stream.
void print_log(const Ledger &ledger)
{
    printf("\"log\": [");
    Commas commas;
    for (const auto &wire : ledger.wires()) {
        printf("%s\n  {\"from\": \"%s\", \"port\": %u, \"frames\": [", commas.next(),
               wire->direction->from->name.c_str(), wire->direction->from_port);
        Commas frames;
        for (const Passage &passage : wire->log)
            printf("%s[%" PRIu64 ", %" PRIu64 ", %d, \"%s\"]", frames.next(), passage.begin,
                   passage.octets, passage.cut, passage.flow ? passage.flow->name.c_str() : "");
        printf("]}");
    }
    printf("],\n");
}

bool quiet(const Scenario &scenario)
{
    for (const Bus *bus : scenario.buses)
        if (!bus->quiet())
            return false;
    return true;
}

void simulate(Scenario &scenario)
{
    Network &network = scenario.network;
    network.start();
    for (Injector *injector : scenario.injectors)
        injector->stop_at(scenario.stop);
    network.run(scenario.stop + scenario.drain);
    for (Bus *bus : scenario.buses)
        bus->release_last();
    Femtoseconds last = network.now() + LAST_ACCESSES;
    while (!quiet(scenario) && network.now() < last)
        network.run(network.now() + 10 * CYCLE);
}

}  // namespace

int main()
{
    try {
        Scenario scenario;
        read(std::cin, scenario);
        Ledger ledger(scenario.network, scenario.bin);
        ledger.record(scenario.windows);
        if (scenario.log)
            ledger.keep_log();
        auto begin = std::chrono::steady_clock::now();
        simulate(scenario);
        std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        printf("{");
        print_flows(ledger);
        print_wires(ledger);
        print_devices(scenario);
        print_windows(scenario);
        if (ledger.keeps_log())
            print_log(ledger);
        printf("\"end_fs\": %" PRIu64 ", \"edges\": %" PRIu64 ", \"seconds\": %.3f}\n",
               scenario.network.now(), scenario.network.edges(), seconds.count());
        return quiet(scenario) ? 0 : 1;
    } catch (const std::exception &error) {
        fprintf(stderr, "bench: %s\n", error.what());
        return 2;
    }
}
