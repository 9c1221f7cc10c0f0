// What is simulated, as lines of words; README.md has all of them.
#pragma once

#include <istream>

#include "injector.h"
#include "ledger.h"
#include "rtl_device.h"

struct Scenario {
    Network network;
    std::vector<Injector *> injectors;
    std::vector<Bus *> buses;
    std::vector<std::string> bus_names;
    std::vector<Window> windows;
    bool log = false;             // of all frames on all wires
    Femtoseconds bin = CYCLE;
    Femtoseconds stop = 0;   // streams begin no frame from here on
    Femtoseconds drain = 0;  // and then what is in flight comes
    uint64_t seed = 1;
};

// Reads all lines; an error names its line.
void read(std::istream &lines, Scenario &scenario);
