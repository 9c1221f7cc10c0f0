// A verilated module as a device: its clocks, its GMII ports, its register bus.
#pragma once

#include <verilated.h>

#include "network.h"

// An access to a device's registers, done in the order in which they were asked for.
struct Access {
    uint64_t cycle;      // not before
    uint32_t address;
    uint32_t value;      // written, or what was read
    bool write;
    std::string name;    // of what is read
};

struct Strobes {
    std::vector<Femtoseconds> issued;
    std::vector<Femtoseconds> stored;
    uint64_t slips = 0;
};

class Bus {
public:
    virtual ~Bus() = default;
    virtual void ask(Access access) = 0;
    // Reads are done from now on.
    virtual void release_last() = 0;
    // Whether all that is due has been done.
    virtual bool quiet() const = 0;
    virtual const std::vector<Access> &answers() const = 0;
    // The beginnings of cycles in which the module said that something happened.
    virtual const Strobes &strobes() const = 0;
    // The address of the instruction whose issues are of interest.
    virtual void watch(unsigned address) = 0;
};

// What a model's ports are called is the adapter's: Module has `Model`, `PORTS`, and static
// functions that drive and read them.
//
// Outputs are read after the edge that sets them; inputs that registers outside set are changed
// after an edge too, so that the next one samples them.
template <class Module>
class RtlDevice : public Device, public Bus {
    using Clocks = std::decay_t<decltype(Module::Model::rx_clk)>;

public:
    explicit RtlDevice(const std::string &name)
        : Device(name, Module::PORTS), context_(std::make_unique<VerilatedContext>()),
          model_(std::make_unique<typename Module::Model>(context_.get(), name.c_str()))
    {
        model_->rst = 1;
        model_->clk = 0;
        model_->rx_clk = 0;
        Module::connect(*model_);
        model_->eval();
    }

    ~RtlDevice() override { model_->final(); }

    bool receives() const override { return true; }

    void receive(unsigned port, Pins pins) override
    {
        edges_ |= 1u << port;
        in_[port] = pins;
    }

    void evaluate(bool own, Femtoseconds now) override
    {
        // Only rising edges do something. A clock falls together with the rise of another one;
        // apart only if it is its own turn again.
        if ((edges_ & risen_) || (own && own_risen_)) {
            fall();
            model_->eval();
        }
        fall();
        for (unsigned port = 0; port < ports; ++port)
            if (edges_ >> port & 1)
                Module::drive(*model_, port, in_[port]);
        model_->rx_clk = static_cast<Clocks>(edges_);
        model_->clk = own;
        model_->eval();
        risen_ = edges_;
        own_risen_ = own;
        edges_ = 0;
        if (own)
            after_edge(now);
    }

    Pins pins(unsigned port) const override { return Module::pins(*model_, port); }

    void ask(Access access) override
    {
        (access.write ? accesses_ : last_).push_back(std::move(access));
    }
    void release_last() override
    {
        accesses_.insert(accesses_.end(), last_.begin(), last_.end());
        last_.clear();
    }
    bool quiet() const override { return accesses_.empty() || accesses_.front().cycle > cycle_; }
    const std::vector<Access> &answers() const override { return answers_; }
    const Strobes &strobes() const override { return strobes_; }
    void watch(unsigned address) override { watched_ = address; }

private:
    static constexpr uint64_t RESET_CYCLES = 64;

    void fall()
    {
        model_->rx_clk = 0;
        model_->clk = 0;
        risen_ = 0;
        own_risen_ = false;
    }

    // What registers outside of the module do at its edge, so that it sees them at the next one.
    void after_edge(Femtoseconds now)
    {
        ++cycle_;
        Module::observe(*model_, watched_, now, period, strobes_);
        if (cycle_ <= RESET_CYCLES) {
            model_->rst = cycle_ < RESET_CYCLES;
            return;
        }
        if (accesses_.empty() || accesses_.front().cycle > cycle_)
            return;
        step(accesses_.front());
    }

    // A cycle of the access: the one in which `ready` is seen is its last one.
    void step(Access &access)
    {
        if (!asked_) {
            Module::bus(*model_, access.address, access.value, access.write, !access.write);
            asked_ = true;
            model_->eval();
        } else if (ended_) {
            Module::bus(*model_, 0, 0, false, false);
            model_->eval();
            if (!access.write)
                answers_.push_back(access);
            accesses_.pop_front();
            asked_ = ended_ = false;
            return;
        }
        if (Module::ready(*model_)) {
            ended_ = true;
            if (!access.write)
                access.value = Module::read_data(*model_);
        }
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<typename Module::Model> model_;
    Pins in_[Module::PORTS];
    unsigned edges_ = 0;      // of receive clocks, that are to be evaluated
    unsigned risen_ = 0;      // receive clocks that are high
    bool own_risen_ = false;
    uint64_t cycle_ = 0;
    std::deque<Access> accesses_;
    std::deque<Access> last_;  // reads, which are of the end
    std::vector<Access> answers_;
    bool asked_ = false;   // the access in front is on the bus
    bool ended_ = false;   // `ready` has been seen in this cycle
    unsigned watched_ = ~0u;
    Strobes strobes_;
};
