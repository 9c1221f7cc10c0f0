// The tree of crates/net/benches/scale.rs in ns-3, with one_way=1: a core bridge, leaf bridges,
// hosts; periodic frames from each host of the first half of the leaves over the core to one of
// the second half, four links each. Links are CSMA channels of two devices that are used one way,
// so nothing contends; bridges learn; hosts use packet sockets, which cost less than UDP over IP.
// ns-3 has neither gates nor credit-based shapers: every device has one first-in, first-out queue.
//
//     ns3 hosts=N hosts_per_leaf=N streams=N frame=OCTETS interval_ns=N mbps=N us=N

#include <ns3/applications-module.h>
#include <ns3/bridge-module.h>
#include <ns3/core-module.h>
#include <ns3/csma-module.h>
#include <ns3/network-module.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint16_t kProtocol = 0x88b5;       // for local experiments
constexpr uint32_t kHeaderAndFcs = 14 + 4;   // what a CSMA device adds
constexpr uint32_t kLinks = 4;

uint64_t received = 0;

void Receive(Ptr<const Packet>, const Address&) { received++; }

uint64_t Number(int argc, char** argv, const char* name) {
    const size_t length = std::strlen(name);
    for (int at = 1; at < argc; at++) {
        if (!std::strncmp(argv[at], name, length) && argv[at][length] == '=') {
            return std::stoull(argv[at] + length + 1);
        }
    }
    NS_FATAL_ERROR("which " << name << '?');
}

// The most memory that the process ever had, in KiB; 0 where nobody says.
uint64_t PeakKib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmHWM:", 0) == 0) {
            return std::stoull(line.substr(6));
        }
    }
    return 0;
}

struct Client {
    Ptr<Node> from;
    Ptr<NetDevice> device;
    Address to;
    Time start;
    Time stop;
    Time interval;
    uint32_t frames;  // 0: until it stops
    uint32_t octets;
};

void Add(const Client& client) {
    PacketSocketAddress remote;
    remote.SetSingleDevice(client.device->GetIfIndex());
    remote.SetPhysicalAddress(client.to);
    remote.SetProtocol(kProtocol);
    auto application = CreateObject<PacketSocketClient>();
    application->SetRemote(remote);
    application->SetAttribute("Interval", TimeValue(client.interval));
    application->SetAttribute("PacketSize", UintegerValue(client.octets - kHeaderAndFcs));
    application->SetAttribute("MaxPackets", UintegerValue(client.frames));
    application->SetStartTime(client.start);
    application->SetStopTime(client.stop);
    client.from->AddApplication(application);
}

void Serve(Ptr<Node> node, Ptr<NetDevice> device) {
    PacketSocketAddress local;
    local.SetSingleDevice(device->GetIfIndex());
    local.SetProtocol(kProtocol);
    auto server = CreateObject<PacketSocketServer>();
    server->SetLocal(local);
    server->TraceConnectWithoutContext("Rx", MakeCallback(&Receive));
    node->AddApplication(server);
}

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](const char* name) { return Number(argc, argv, name); };
    const uint64_t hosts = number("hosts"), perLeaf = number("hosts_per_leaf");
    const uint64_t streams = number("streams"), leaves = hosts / perLeaf, talking = leaves / 2;
    const Time interval = NanoSeconds(number("interval_ns"));
    const Time begin = Seconds(1), end = begin + MicroSeconds(number("us"));
    const uint32_t octets = number("frame");

    CsmaHelper link;
    link.SetChannelAttribute("DataRate", DataRateValue(DataRate(number("mbps") * 1'000'000)));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(50)));
    NodeContainer host, leaf, core;
    host.Create(hosts);
    leaf.Create(leaves);
    core.Create(1);
    PacketSocketHelper().Install(host);
    std::vector<Ptr<NetDevice>> device(hosts);
    NetDeviceContainer atCore;
    for (uint64_t l = 0; l < leaves; l++) {
        NetDeviceContainer trunk = link.Install(NodeContainer(leaf.Get(l), core.Get(0)));
        NetDeviceContainer atLeaf(trunk.Get(0));
        atCore.Add(trunk.Get(1));
        for (uint64_t h = l * perLeaf; h < (l + 1) * perLeaf; h++) {
            NetDeviceContainer access = link.Install(NodeContainer(host.Get(h), leaf.Get(l)));
            device[h] = access.Get(0);
            atLeaf.Add(access.Get(1));
        }
        BridgeHelper().Install(leaf.Get(l), atLeaf);
    }
    BridgeHelper().Install(core.Get(0), atCore);

    // Every receiver says once where it is, so that the bridges need not flood.
    for (uint64_t h = talking * perLeaf; h < hosts; h++) {
        Serve(host.Get(h), device[h]);
        const Time at = MicroSeconds(100 * (h + 1));
        const Address to = device[h - talking * perLeaf]->GetAddress();
        Add({host.Get(h), device[h], to, at, begin, Seconds(1), 1, 64});
    }
    uint64_t expected = 0;
    for (uint64_t s = 0; s < streams; s++) {
        const uint64_t from = s % talking * perLeaf + s / talking % perLeaf;
        const Address to = device[from + talking * perLeaf]->GetAddress();
        const uint64_t part = s * 618'034 % 1'000'000;
        const Time phase = NanoSeconds(part * interval.GetNanoSeconds() / 1'000'000);
        Add({host.Get(from), device[from], to, begin + phase, end, interval, 0, octets});
        expected += (end - begin - phase).GetNanoSeconds() / interval.GetNanoSeconds();
    }

    Simulator::Stop(begin - NanoSeconds(1));
    Simulator::Run();
    const uint64_t before = Simulator::GetEventCount();
    received = 0;
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpuStart = std::clock();
    Simulator::Stop(end + MilliSeconds(10) - Simulator::Now());
    Simulator::Run();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double cpu = double(std::clock() - cpuStart) / CLOCKS_PER_SEC;
    const uint64_t events = Simulator::GetEventCount() - before;
    // One more or less per stream, by where the end falls.
    if (received + streams < expected || received > expected + streams) {
        std::fprintf(stderr, "%lu of %lu frames arrived\n", received, expected);
        return 1;
    }
    std::printf("{\"frames\": %lu, \"hops\": %lu, \"events\": %lu, ", received, received * kLinks,
                events);
    std::printf("\"seconds\": %.6f, \"cpu_s\": %.6f, \"peak_kib\": %lu}\n", seconds.count(), cpu,
                PeakKib());
    Simulator::Destroy();
    return 0;
}
