// What the modules' ports are called.
#pragma once

#include "rtl_device.h"

#include "Vatacama_switch.h"
#include "Vnc_station.h"

struct SwitchModule {
    using Model = Vatacama_switch;
    static constexpr unsigned PORTS = 4;

    static void connect(Model &model) { model.link_up = 0xf; }
    static void drive(Model &model, unsigned port, Pins pins)
    {
        auto put = [port](auto &word, unsigned width, unsigned value) {
            unsigned mask = (1u << width) - 1;
            word = static_cast<std::decay_t<decltype(word)>>(
                (word & ~(mask << port * width)) | value << port * width);
        };
        put(model.rx_dv, 1, pins.valid);
        put(model.rx_er, 1, pins.error);
        put(model.rxd, 8, pins.data);
    }
    static Pins pins(const Model &model, unsigned port)
    {
        return {static_cast<uint8_t>(model.txd >> 8 * port), (model.tx_en >> port & 1) != 0,
                (model.tx_er >> port & 1) != 0};
    }
    static void bus(Model &model, uint32_t address, uint32_t value, bool write, bool read)
    {
        model.address = address;
        model.write_data = value;
        model.write = write;
        model.read = read;
    }
    static bool ready(const Model &model) { return model.ready; }
    static uint32_t read_data(const Model &model) { return model.read_data; }
    static void observe(const Model &, unsigned, Femtoseconds, Femtoseconds, Strobes &) {}
};

struct StationModule {
    using Model = Vnc_station;
    static constexpr unsigned PORTS = 1;

    static void connect(Model &model) { model.link_status = 1; }
    static void drive(Model &model, unsigned, Pins pins)
    {
        model.rx_dv = pins.valid;
        model.rx_er = pins.error;
        model.rxd = pins.data;
    }
    static Pins pins(const Model &model, unsigned)
    {
        return {model.txd, model.tx_en != 0, model.tx_er != 0};
    }
    static void bus(Model &model, uint32_t address, uint32_t value, bool write, bool read)
    {
        model.bus_address = address;
        model.bus_write_data = value;
        model.bus_write = write;
        model.bus_read = read;
    }
    static bool ready(const Model &model) { return model.bus_ready; }
    static uint32_t read_data(const Model &model) { return model.bus_read_data; }
    // An issue is said one cycle later; a stored word in the cycle of its writing.
    static void observe(const Model &model, unsigned watched, Femtoseconds now, Femtoseconds period,
                        Strobes &strobes)
    {
        if (model.trace_issue && model.trace_address == watched)
            strobes.issued.push_back(now - period);
        if (model.trace_stored && model.trace_stored_last)
            strobes.stored.push_back(now);
    }
};
