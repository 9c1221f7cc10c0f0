//! How the engine's speed and memory grow with hosts, streams and load.
//!
//! A tree: one core bridge, leaf bridges around it, hosts at these. Every stream is periodic and
//! goes from a host over the core to a host of another leaf: four links, four transmissions a
//! frame. All ports have credit-based shapers on the two queues in use and length-aware gates.
//!
//! `cargo bench -p onbeat-net --bench scale [-- NAME=NUMBER…]` prints one line of JSON; `main` has
//! the names. `benches/simulation/run.py` calls it for the tables and the chart.

#[path = "../tests/engine/network.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod network;

use network::{Network, every};
use onbeat_model::port::{GateControl, GateEntry, PortSettings, Selection};
use onbeat_model::system::NodeId;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, Octets, frame};
use onbeat_net::{DRAIN_LIMIT, Engine, Options};
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// What is asked for on the command line.
struct Scale {
    hosts: u64,
    hosts_per_leaf: u64,
    streams: u64,
    /// Octets of a frame, destination address to FCS.
    frame: u64,
    /// Per cent of the links between leaves and core, each way.
    load: u64,
    mbps: u64,
    /// Simulated microseconds.
    us: u64,
    /// 0: strict priority; 1: credit-based shapers; 2: and gates.
    shapers: u64,
    /// 1: streams go from the first half of the hosts to the second, so no link is used both ways.
    one_way: u64,
}

impl Scale {
    fn from_args() -> Self {
        let number = |name: &str, default| {
            let value = |arg: String| arg.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
            std::env::args().find_map(value).unwrap_or(default)
        };
        let hosts = number("hosts", 100);
        Self {
            hosts,
            hosts_per_leaf: number("hosts_per_leaf", 10).min(hosts / 2),
            streams: number("streams", hosts),
            frame: number("frame", 1_000),
            load: number("load", 50),
            mbps: number("mbps", 10_000),
            us: number("us", 10_000),
            shapers: number("shapers", 2),
            one_way: number("one_way", 0),
        }
    }

    fn leaves(&self) -> u64 {
        self.hosts / self.hosts_per_leaf
    }

    /// Leaves with talkers.
    fn talking(&self) -> u64 {
        if self.one_way == 1 { self.leaves() / 2 } else { self.leaves() }
    }

    /// The time between two frames of a stream, for the load of the links to the core.
    fn interval(&self) -> u64 {
        let on_wire = frame::on_wire(Octets::new(self.frame as u32));
        let bits = u64::from(on_wire.get()) * 8 * self.streams.div_ceil(self.talking());
        bits * 100_000 / (self.load * self.mbps)
    }
}

fn network(scale: &Scale) -> Network {
    let mut network = Network::new();
    let hosts: Vec<NodeId> = (0..scale.hosts).map(|_| network.host()).collect();
    let core = network.bridge(1_000);
    for at_leaf in hosts.chunks(scale.hosts_per_leaf as usize) {
        let leaf = network.bridge(1_000);
        network.link(leaf, core, scale.mbps, 50);
        for host in at_leaf {
            network.link(*host, leaf, scale.mbps, 50);
        }
    }
    for at in 0..scale.streams {
        let leaf = at % scale.talking();
        let host = at / scale.talking() % scale.hosts_per_leaf;
        let to = (leaf + scale.leaves() / 2) % scale.leaves();
        let host_of = |leaf| hosts[(leaf * scale.hosts_per_leaf + host) as usize];
        let frame = [scale.frame as u32; 2];
        let interval = scale.interval();
        let id = network.stream(host_of(leaf), &[host_of(to)], frame, every(interval as i64));
        let stream = &mut network.system.streams[id.0 as usize];
        stream.traffic_class = 6 - (at / scale.talking() % 2) as u8;
        // Spread over the interval by the golden ratio: neither in step nor all at once.
        let phase = at * 618_034 % 1_000_000 * scale.interval() / 1_000_000;
        stream.phase = Span::from_ns(phase as i64);
    }
    network.plan.ports.iter_mut().for_each(|port| shape(&mut port.settings, scale));
    network
}

/// Credit for a fifth more than each of the two queues needs; in 250 µs, 10 for queue 7, which is
/// not used, and 240 for the others.
fn shape(settings: &mut PortSettings, scale: &Scale) {
    let streams = scale.streams.div_ceil(scale.talking());
    for (queue, share) in [(6, streams.div_ceil(2)), (5, streams / 2)] {
        let needed = scale.mbps * scale.load * 10_000 * share / streams;
        let idle_slope = BitRate::from_bps((needed * 6 / 5).max(1));
        if scale.shapers >= 1 {
            settings.selection[queue] = Selection::CreditBased { idle_slope };
        }
    }
    if scale.shapers >= 2 {
        let entry = |open, us| GateEntry { open, span: Span::from_us(us) };
        settings.gates.push(GateControl {
            base: NetTime::ZERO,
            cycle: Span::from_us(250),
            entries: vec![entry(1 << 7, 10), entry(!(1 << 7), 240)],
            length_aware: true,
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn main() {
    let scale = Scale::from_args();
    let network = network(&scale);
    let end = NetTime::from_ns(scale.us as i64 * 1_000);
    let options = Options {
        seed: 1,
        host_delays: true,
        load_bin: Span::from_s(1),
        noise_until: end,
        traffic_until: end,
        model_channels: false,
    };
    let start = Instant::now();
    let mut engine = Engine::new(&network.system, &network.plan, options);
    let set_up = start.elapsed().as_secs_f64();
    let (start, cpu_before) = (Instant::now(), cpu_s());
    assert_eq!(engine.advance(end + DRAIN_LIMIT), None, "nobody is told anything");
    let wall = start.elapsed().as_secs_f64();
    report(&scale, &engine, set_up, wall, cpu_s() - cpu_before);
}

/// What this thread has had of a core, in seconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The most memory that the process ever had, in KiB; 0 where it is unknown.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Checks that every frame arrived, and prints what was measured.
fn report(scale: &Scale, engine: &Engine, set_up: f64, wall: f64, cpu: f64) {
    let observed = engine.observed();
    let released: u64 = observed.streams.iter().map(|stream| stream.released).sum();
    let received: u64 = observed.streams.iter().map(|stream| stream.listeners[0].frames).sum();
    assert_eq!(received, released, "frames were lost");
    let queues = observed.ports.iter().flat_map(|port| port.queues);
    let hops: u64 = queues.map(|queue| queue.sent).sum();
    let longest = observed.streams.iter().filter_map(|stream| stream.listeners[0].max).max();
    println!(
        "{{\"hosts\": {}, \"streams\": {}, \"load\": {}, \"mbps\": {}, \"simulated_us\": {}, \
         \"frames\": {received}, \"hops\": {hops}, \"events\": {}, \"set_up_s\": {set_up:.6}, \
         \"seconds\": {wall:.6}, \"cpu_s\": {cpu:.6}, \
         \"interval_ns\": {}, \"longest_ns\": {}, \"peak_kib\": {}}}",
        scale.hosts,
        scale.streams,
        scale.load,
        scale.mbps,
        scale.us,
        observed.events,
        scale.interval(),
        longest.map_or(0, Span::as_ns),
        peak_kib(),
    );
}
