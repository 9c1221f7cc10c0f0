#include "scenario.h"

#include <map>
#include <sstream>
#include <stdexcept>

#include "modules.h"

namespace {

using Words = std::vector<std::string>;

uint64_t number(const std::string &word)
{
    size_t end = 0;
    uint64_t value = std::stoull(word, &end, 0);
    if (end != word.size())
        throw std::runtime_error("no number: " + word);
    return value;
}

// `key=value` words. Each must be asked for.
class Options {
public:
    Options(const Words &words, size_t from)
    {
        for (size_t i = from; i < words.size(); ++i) {
            size_t at = words[i].find('=');
            if (at == std::string::npos)
                throw std::runtime_error("no option: " + words[i]);
            values_[words[i].substr(0, at)] = words[i].substr(at + 1);
        }
    }
    uint64_t get(const std::string &key, uint64_t otherwise)
    {
        std::string word = text(key, "");
        return word.empty() ? otherwise : number(word);
    }
    std::string text(const std::string &key, const std::string &otherwise)
    {
        auto found = values_.find(key);
        if (found == values_.end())
            return otherwise;
        std::string value = found->second;
        values_.erase(found);
        return value;
    }
    void end() const
    {
        if (!values_.empty())
            throw std::runtime_error("unknown option: " + values_.begin()->first);
    }

private:
    std::map<std::string, std::string> values_;
};

Device &device(Scenario &scenario, const std::string &name)
{
    Device *found = scenario.network.find(name);
    if (!found)
        throw std::runtime_error("no such device: " + name);
    return *found;
}

void add_device(Scenario &scenario, const Words &words)
{
    std::unique_ptr<Device> made;
    const std::string &name = words.at(1);
    if (scenario.network.find(name))
        throw std::runtime_error("two devices have one name: " + name);
    if (words[0] == "injector") {
        auto injector = std::make_unique<Injector>(
            name, scenario.seed * 1'000'003 + scenario.network.devices().size());
        scenario.injectors.push_back(injector.get());
        made = std::move(injector);
    } else {
        if (words[0] == "switch")
            made = std::make_unique<RtlDevice<SwitchModule>>(name);
        else
            made = std::make_unique<RtlDevice<StationModule>>(name);
        scenario.buses.push_back(dynamic_cast<Bus *>(made.get()));
        scenario.bus_names.push_back(name);
    }
    Options options(words, 2);
    made->period = options.get("period_fs", CYCLE);
    made->phase = options.get("phase_fs", 0) + made->period;
    options.end();
    scenario.network.add(std::move(made));
}

Fault fault(const std::string &name)
{
    const std::map<std::string, Fault> faults = {
        {"none", Fault::None},       {"fcs", Fault::CheckSequence},
        {"error", Fault::Error},     {"endless", Fault::Endless},
        {"preamble", Fault::NoPreamble},
    };
    return faults.at(name);
}

void add_stream(Scenario &scenario, const Words &words)
{
    auto *injector = dynamic_cast<Injector *>(&device(scenario, words.at(1)));
    if (!injector)
        throw std::runtime_error("no injector: " + words.at(1));
    Options options(words, 3);
    Stream stream;
    stream.name = words.at(2);
    std::string type = options.text("type", "be");
    stream.type = type == "be" ? Class::BestEffort : Class::RealTime;
    stream.sync = type == "sync";
    stream.length = static_cast<unsigned>(options.get("length", 1000));
    stream.most_length = static_cast<unsigned>(options.get("most_length", 0));
    stream.interval_millicycles = options.get("interval_millicycles", 0);
    stream.start = options.get("start", 0);
    stream.count = options.get("count", 0);
    stream.jitter = options.get("jitter", 0);
    stream.destination = options.get("destination", stream.destination);
    stream.source = options.get("source", 0);
    stream.preamble = static_cast<unsigned>(options.get("preamble", PREAMBLE_OCTETS));
    stream.gap = static_cast<unsigned>(options.get("gap", GAP));
    stream.tagged = options.get("tagged", 0);
    stream.exact = options.get("exact", 0);
    stream.fault = fault(options.text("fault", "none"));
    options.end();
    injector->add(std::move(stream));
}

void add_access(Scenario &scenario, const Words &words)
{
    auto *bus = dynamic_cast<Bus *>(&device(scenario, words.at(1)));
    if (!bus)
        throw std::runtime_error("no registers: " + words.at(1));
    bool write = words[0] == "write";
    uint64_t cycle = words.size() > 4 ? number(words[4]) : 0;
    uint32_t value = write ? static_cast<uint32_t>(number(words.at(3))) : 0;
    bus->ask({cycle, static_cast<uint32_t>(number(words.at(2))), value, write,
              write ? "" : words.at(3)});
}

void add_window(Scenario &scenario, const Words &words)
{
    Device &from = device(scenario, words.at(1));
    for (auto &direction : scenario.network.directions())
        if (direction->from == &from && direction->from_port == number(words.at(2)))
            scenario.windows.push_back(
                {direction.get(), number(words.at(3)), number(words.at(4)), {}});
}

void take(Scenario &scenario, const Words &words)
{
    const std::string &word = words[0];
    if (word == "seed")
        scenario.seed = number(words.at(1));
    else if (word == "bin_fs")
        scenario.bin = number(words.at(1));
    else if (word == "log")
        scenario.log = true;
    else if (word == "stop_fs")
        scenario.stop = number(words.at(1));
    else if (word == "drain_fs")
        scenario.drain = number(words.at(1));
    else if (word == "idle_limit")
        scenario.network.set_idle_limit(number(words.at(1)));
    else if (word == "switch" || word == "station" || word == "injector")
        add_device(scenario, words);
    else if (word == "link")
        scenario.network.link(device(scenario, words.at(1)), number(words.at(2)),
                              device(scenario, words.at(3)), number(words.at(4)),
                              number(words.at(5)));
    else if (word == "stream")
        add_stream(scenario, words);
    else if (word == "write" || word == "read")
        add_access(scenario, words);
    else if (word == "watch")
        dynamic_cast<Bus &>(device(scenario, words.at(1))).watch(number(words.at(2)));
    else if (word == "window")
        add_window(scenario, words);
    else
        throw std::runtime_error("unknown word: " + word);
}

}  // namespace

void read(std::istream &lines, Scenario &scenario)
{
    std::string line;
    for (unsigned at = 1; std::getline(lines, line); ++at) {
        std::istringstream stream(line.substr(0, line.find('#')));
        Words words;
        for (std::string word; stream >> word;)
            words.push_back(word);
        if (words.empty())
            continue;
        try {
            take(scenario, words);
        } catch (const std::exception &error) {
            throw std::runtime_error("line " + std::to_string(at) + ": " + error.what());
        }
    }
}
