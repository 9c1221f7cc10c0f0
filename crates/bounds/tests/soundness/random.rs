//! Random systems: topologies, shapers, clocks and sources of all kinds, from a seed.

use onbeat_bounds::plan;
use onbeat_model::diagnostic::Origin;
use onbeat_model::port::{GateControl, GateEntry, Policing, PortSettings, Selection, TokenBucket};
use onbeat_model::stream::{Fault, FaultKind, PathRequest, Source, Stream};
use onbeat_model::system::{
    Bridge, Delay, Host, Link, LinkId, Node, NodeId, NodeKind, Noise, Port, PortId, QueueLimits,
    System,
};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, Octets, frame};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The shares, in per cent, with which something is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) credit: u64,
    pub(crate) asynchronous: u64,
    pub(crate) gates: u64,
    pub(crate) preemption: u64,
    pub(crate) clocks: u64,
    pub(crate) noise: u64,
    pub(crate) cut_through: u64,
    pub(crate) policing: u64,
    pub(crate) replication: u64,
    /// Of systems with gates: class 7 is scheduled in windows of its own.
    pub(crate) scheduled: u64,
}

pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
    /// From `0..count`.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count
    }
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.below((most - least + 1) as u64) as i64
    }
    pub(crate) fn chance(&mut self, per_cent: u64) -> bool {
        self.below(100) < per_cent
    }
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A system without traffic: its bridges in one of five shapes, one or two hosts at each.
fn topology(dice: &mut Dice, mix: &Mix) -> System {
    let bridges = dice.between(1, 5) as usize;
    let hosts: Vec<usize> =
        (0..bridges).flat_map(|b| vec![b; dice.between(1, 2) as usize]).collect();
    let mut system = System::empty("random", Span::from_ms(100));
    for host in 0..hosts.len() {
        let delay = |dice: &mut Dice| match dice.below(3) {
            0 => Delay::Interval { min: Span::ZERO, max: Span::from_ns(dice.between(0, 60_000)) },
            _ => Delay::Zero,
        };
        let mac = MacAddress([2, 0, 0, 0, 0, host as u8 + 1]);
        let (stack_tx, stack_rx) = (delay(dice), delay(dice));
        let kind = NodeKind::Host(Host { mac, stack_tx, stack_rx, ..Host::default() });
        add_node(&mut system, format!("h{host}"), kind, clock(dice, mix));
    }
    for bridge in 0..bridges {
        let kind = NodeKind::Bridge(Bridge {
            forwarding: Span::from_ns(dice.between(0, 5_000)),
            cut_through: dice.chance(mix.cut_through),
            ..Bridge::default()
        });
        add_node(&mut system, format!("b{bridge}"), kind, clock(dice, mix));
    }
    let node = |bridge: usize| NodeId((hosts.len() + bridge) as u32);
    let rates = [10_000_000, 100_000_000, 1_000_000_000, 2_500_000_000];
    let rate = [dice.one(&rates), dice.one(&rates)];
    for (host, bridge) in hosts.iter().enumerate() {
        let rate = dice.one(&rate);
        add_link(&mut system, NodeId(host as u32), node(*bridge), rate);
    }
    for (a, b) in edges(dice, bridges) {
        let rate = dice.one(&rate);
        add_link(&mut system, node(a), node(b), rate);
    }
    system
}

/// A tandem, a tree, a ring, a full mesh, or a ring with a chord.
fn edges(dice: &mut Dice, bridges: usize) -> Vec<(usize, usize)> {
    let tandem = || (1..bridges).map(|b| (b - 1, b)).collect::<Vec<_>>();
    match dice.below(5) {
        0 => tandem(),
        1 => (1..bridges).map(|b| (dice.below(b as u64) as usize, b)).collect(),
        2 | 3 if bridges > 2 => [tandem(), vec![(bridges - 1, 0)]].concat(),
        4 if bridges > 3 => [tandem(), vec![(bridges - 1, 0), (0, 2)]].concat(),
        _ => (0..bridges).flat_map(|b| (0..b).map(move |a| (a, b))).collect(),
    }
}

fn clock(dice: &mut Dice, mix: &Mix) -> ClockError {
    if !dice.chance(mix.clocks) {
        return ClockError::default();
    }
    let wanders = dice.chance(30);
    ClockError {
        offset: Span::from_ns(dice.between(-100_000, 100_000)),
        drift_ppb: dice.between(-200_000, 200_000) as i32,
        wander: Span::from_ns(if wanders { dice.between(1, 2_000) } else { 0 }),
        wander_period: Span::from_ms(if wanders { 50 } else { 0 }),
        ..ClockError::default()
    }
}

pub(crate) fn add_node(system: &mut System, name: String, kind: NodeKind, clock: ClockError) {
    // Room for whatever is promised a bound: noise fills its own queue only.
    let queue = QueueLimits { frames: 100_000, octets: Octets::new(1 << 27) };
    let (ports, origin) = (Vec::new(), Origin::default());
    system.nodes.push(Node { name, kind, clock, queue, ports, origin });
}

pub(crate) fn add_link(system: &mut System, a: NodeId, b: NodeId, bps: u64) {
    let link = LinkId(system.links.len() as u32);
    let ports = [PortId(2 * link.0), PortId(2 * link.0 + 1)];
    for (end, node) in [a, b].into_iter().enumerate() {
        let name = format!("p{}", system.node(node).ports.len() + 1);
        let settings = PortSettings::default();
        system.ports.push(Port { name, node, link, peer: ports[1 - end], settings });
        system.nodes[node.index()].ports.push(ports[end]);
    }
    let (rate, propagation) = (BitRate::from_bps(bps), Span::from_ns(bps as i64 % 977));
    system.links.push(Link { ports, rate, propagation, origin: Origin::default() });
}

fn hosts(system: &System) -> u64 {
    system.nodes.iter().filter(|n| matches!(n.kind, NodeKind::Host(_))).count() as u64
}

fn stream(dice: &mut Dice, mix: &Mix, system: &System) -> Stream {
    let hosts = hosts(system);
    let talker = dice.below(hosts);
    let count = 1 + dice.below(3).min(hosts - 2);
    let mut listeners: Vec<NodeId> = Vec::new();
    while (listeners.len() as u64) < count {
        let listener = NodeId(dice.below(hosts) as u32);
        if u64::from(listener.0) != talker && !listeners.contains(&listener) {
            listeners.push(listener);
        }
    }
    let longest = dice.one(&[68, 100, 300, 700, 1_522]);
    let shortest = if dice.chance(70) { longest } else { dice.between(68, longest) };
    let interval = Span::from_ns(dice.between(100_000, 3_000_000));
    let source = match dice.below(10) {
        0..4 => Source::Periodic { interval, jitter: Span::ZERO },
        4..6 => Source::Periodic { interval, jitter: Span::from_ns(dice.between(0, 150_000)) },
        6 => Source::Sporadic { interval, mean: interval + Span::from_us(30) },
        7..9 => Source::Bursty { interval, frames: dice.between(2, 6) as u32 },
        _ => {
            let mut at = 0;
            let frames = (0..dice.between(3, 30)).map(|_| {
                let gap = dice.between(0, 2 * interval.as_ns());
                at += dice.one(&[0, 0, gap]);
                let octets = dice.between(shortest, longest) as u32;
                (Span::from_ns(at), Octets::new(octets))
            });
            Source::Trace(frames.collect())
        }
    };
    let replicated = dice.chance(mix.replication);
    let ways = if replicated { both_ways(system, talker, listeners[0]) } else { Vec::new() };
    if !ways.is_empty() {
        listeners.truncate(1);
    }
    Stream {
        name: format!("s{}", system.streams.len()),
        talker: NodeId(talker as u32),
        paths: PathRequest::along(ways),
        listeners,
        traffic_class: dice.one(&[7, 7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 3, 2, 1, 0]),
        vlan: 2,
        pcp: 3,
        frame: [shortest, longest].map(|octets| Octets::new(octets as u32)),
        source,
        phase: Span::from_ns(if dice.chance(30) { 0 } else { dice.between(0, interval.as_ns()) }),
        regulator: None,
        policing: None,
        deadline: None,
        origin: Origin::default(),
    }
}

/// Two ways with no link in common but the hosts' own; none if there are no two.
fn both_ways(system: &System, talker: u64, listener: NodeId) -> Vec<Vec<NodeId>> {
    let bridge = |host: NodeId| {
        let port = system.node(host).ports[0];
        system.port(system.port(port).peer).node
    };
    let (from, to) = (bridge(NodeId(talker as u32)), bridge(listener));
    let mut used = Vec::new();
    let ways: Vec<_> = (0..2).filter_map(|_| walk(system, from, to, &mut used)).collect();
    if from == to || ways.len() < 2 { Vec::new() } else { ways }
}

/// The bridges of a shortest way that uses no link of `used`, which it adds to.
fn walk(system: &System, from: NodeId, to: NodeId, used: &mut Vec<LinkId>) -> Option<Vec<NodeId>> {
    let mut ahead = vec![vec![from]];
    let mut at = 0;
    while at < ahead.len() {
        let way = ahead[at].clone();
        let last = *way.last().expect("a way has a start");
        if last == to {
            for pair in way.windows(2) {
                let ports = &system.node(pair[0]).ports;
                let port = ports.iter().find(|p| peer(system, **p) == pair[1]).expect("a link");
                used.push(system.port(*port).link);
            }
            return Some(way);
        }
        for &port in &system.node(last).ports {
            let next = peer(system, port);
            let bridge = matches!(system.node(next).kind, NodeKind::Bridge(_));
            if bridge && !way.contains(&next) && !used.contains(&system.port(port).link) {
                ahead.push([&way[..], &[next]].concat());
            }
        }
        at += 1;
    }
    None
}

fn peer(system: &System, port: PortId) -> NodeId {
    system.port(system.port(port).peer).node
}

/// Bits on the wire per second of a stream, rounded up.
fn load(stream: &Stream) -> u64 {
    let bits = u64::from(frame::on_wire(stream.frame[1]).get()) * 8;
    let (frames, ns) = match &stream.source {
        Source::Periodic { interval, .. } | Source::Sporadic { interval, .. } => (1, *interval),
        Source::Bursty { interval, frames } => (u64::from(*frames), *interval),
        Source::Trace(frames) => (frames.len() as u64, frames[frames.len() - 1].0),
    };
    bits * frames * 1_000_000_000 / (ns.as_ns().max(1) as u64) + 1
}

fn slower(stream: &mut Stream, percent: i64) {
    let longer = |span: &mut Span| *span = Span::from_ns(span.as_ns() * percent / 100 + 1);
    match &mut stream.source {
        Source::Periodic { interval, .. } | Source::Bursty { interval, .. } => longer(interval),
        Source::Sporadic { interval, mean } => {
            longer(interval);
            longer(mean);
        }
        Source::Trace(frames) => frames.iter_mut().for_each(|frame| longer(&mut frame.0)),
    }
}

/// Per port and queue the load, by the routes that a plan takes.
fn loads(system: &System) -> Vec<[u64; 8]> {
    let plan = plan(system, true).expect("streams alone can always be planned");
    let mut loads = vec![[0; 8]; system.ports.len()];
    for (stream, planned) in system.streams.iter().zip(&plan.streams) {
        let mut ports: Vec<PortId> = planned.paths.iter().flatten().flatten().copied().collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            loads[port.index()][usize::from(stream.traffic_class)] += load(stream);
        }
    }
    loads
}

/// A whole system. Its ports carry about `load` per cent at most, before gates take some.
pub(crate) fn system(seed: u64, mix: &Mix) -> System {
    let mut dice = Dice::new(seed);
    let mut system = loop {
        let system = topology(&mut dice, mix);
        if hosts(&system) > 1 {
            break system;
        }
    };
    for _ in 0..dice.between(2, 12) {
        let stream = stream(&mut dice, mix, &system);
        system.streams.push(stream);
    }
    let target = dice.one(&[20, 50, 75, 90]);
    for _ in 0..40 {
        let loads = loads(&system);
        let worst = loads.iter().zip(&system.ports).map(|(load, port)| {
            let rate = system.links[port.link.index()].rate.as_bps();
            load.iter().sum::<u64>() * 100 / rate
        });
        let worst = worst.max().unwrap_or(0);
        if worst <= target {
            break;
        }
        let percent = (worst * 100 / target + 1).min(1_000) as i64;
        system.streams.iter_mut().for_each(|stream| slower(stream, percent));
    }
    settings(&mut dice, mix, &mut system);
    for stream in &mut system.streams {
        shape(&mut dice, mix, stream);
    }
    if dice.chance(mix.gates) && dice.chance(mix.scheduled) {
        schedule(&mut dice, &mut system);
    }
    babble(&mut dice, &mut system);
    if dice.chance(mix.noise) {
        for _ in 0..2 {
            noise(&mut dice, &mut system);
        }
    }
    system
}

/// How ports send: one choice of shapers for the whole system, or another one at each port; gates
/// here and there.
fn settings(dice: &mut Dice, mix: &Mix, system: &mut System) {
    let loads = loads(system);
    let draw = |dice: &mut Dice| {
        let by_credit = if dice.chance(75) { 0b1100_0000 } else { dice.below(256) as u8 };
        let credit = if dice.chance(mix.credit) { by_credit } else { 0 };
        let asynchronous = dice.chance(mix.asynchronous);
        let preemptable = if dice.chance(mix.preemption) { dice.below(255) as u8 } else { 0 };
        (credit, asynchronous, preemptable)
    };
    let (alike, gated) = (dice.chance(70), dice.chance(mix.gates));
    let all = draw(dice);
    for (port, loads) in loads.iter().enumerate() {
        let rate = system.link_of(PortId(port as u32)).rate.as_bps();
        let settings = &mut system.ports[port].settings;
        let (credit, asynchronous, preemptable) = if alike { all } else { draw(dice) };
        settings.preemptable = preemptable;
        for queue in (0..8).filter(|queue| credit >> queue & 1 == 1) {
            let slope = (loads[queue] * (101 + dice.below(40)) / 100).min(rate * 9 / 10);
            if slope > 0 {
                let idle_slope = BitRate::from_bps(slope);
                settings.selection[queue] = Selection::CreditBased { idle_slope };
            }
        }
        for queue in [5, 4].into_iter().filter(|_| asynchronous) {
            settings.selection[queue] = Selection::Asynchronous;
        }
        if gated && dice.chance(50) {
            settings.gates = gates(dice, rate);
        }
    }
}

fn gates(dice: &mut Dice, rate: u64) -> Vec<GateControl> {
    let length_aware = dice.chance(70);
    // Windows for a few of the longest frames.
    let least = (1_542 * 8 * 1_000_000_000 / rate) as i64;
    let list = |dice: &mut Dice, base: i64| {
        let entries: Vec<_> = (0..dice.between(1, 4))
            .map(|_| GateEntry {
                open: (dice.below(256) | dice.below(256)) as u8,
                span: Span::from_ns(dice.between(least, 6 * least)),
            })
            .collect();
        let whole: Span = entries.iter().map(|e| e.span).sum();
        let cycle = whole + Span::from_ns(dice.one(&[0, 0, least, -least / 2]));
        GateControl { base: NetTime::from_ns(base), cycle, entries, length_aware }
    };
    let base = dice.between(-1_000_000, 1_000_000);
    let mut lists = vec![list(dice, base)];
    if dice.chance(20) {
        let later = base + dice.between(1, 20_000_000);
        lists.push(list(dice, later));
    }
    lists
}

/// Windows of their own for class 7, the same at every port, and periods that fit.
fn schedule(dice: &mut Dice, system: &mut System) {
    let longest = system.streams.iter().filter(|s| s.traffic_class == 7).map(|s| s.frame[1]).max();
    let slowest = system.links.iter().map(|link| link.rate.as_bps()).min();
    let (Some(longest), Some(slowest)) = (longest, slowest) else { return };
    let frame_ns = (u64::from(longest.get() + 20) * 8_000_000_000 / slowest) as i64 + 1_000;
    let own = Span::from_ns(frame_ns * dice.between(1, 4));
    let rest = Span::from_ns(dice.between(frame_ns, 10 * frame_ns));
    let entries = vec![GateEntry { open: 0x80, span: own }, GateEntry { open: 0x7f, span: rest }];
    let base = NetTime::from_ns(dice.one(&[0, 0, -1_000_000, -777]));
    let cycle = own + rest;
    for port in &mut system.ports {
        port.settings.preemptable &= 0x7f;
        port.settings.selection[7] = Selection::StrictPriority;
        let gates = GateControl { base, cycle, entries: entries.clone(), length_aware: true };
        port.settings.gates = vec![gates];
    }
    for stream in system.streams.iter_mut().filter(|s| s.traffic_class == 7) {
        let interval = cycle * dice.between(2, 4);
        let jitter = Span::from_ns(dice.one(&[0, 0, frame_ns / 3]));
        stream.source = match dice.below(8) {
            0 => Source::Bursty { interval, frames: dice.between(2, 4) as u32 },
            1 => Source::Sporadic { interval, mean: interval + Span::from_us(30) },
            _ => Source::Periodic { interval, jitter },
        };
        stream.phase = Span::from_ns(dice.between(0, interval.as_ns()));
    }
}

/// A bucket for asynchronous shaping that the source keeps or, now and then, does not; a meter.
fn shape(dice: &mut Dice, mix: &Mix, stream: &mut Stream) {
    let wire = frame::on_wire(stream.frame[1]).get();
    let frames = match &stream.source {
        Source::Bursty { frames, .. } => *frames,
        Source::Trace(frames) => frames.len() as u32,
        _ => 2,
    };
    let bucket = |dice: &mut Dice| TokenBucket {
        rate: BitRate::from_bps(load(stream) * (100 + dice.below(30)) / 100 + 1),
        // Now and then too small for what the source sends at once.
        burst: Octets::new(match dice.chance(80) {
            true => wire * (frames + dice.below(3) as u32),
            false => wire * (1 + dice.below(frames.into()) as u32),
        }),
    };
    let (regulator, meter) = (bucket(dice), bucket(dice));
    if dice.chance(80) {
        stream.regulator = Some(regulator);
    }
    if dice.chance(mix.policing) {
        stream.policing = Some(Policing { meter: Some(meter), max_frame: None, block: false });
    }
}

/// Lets one policed stream babble for a while.
fn babble(dice: &mut Dice, system: &mut System) {
    let policed = system.streams.iter().position(|stream| stream.policing.is_some());
    if let Some(at) = policed.filter(|_| dice.chance(50)) {
        let from = NetTime::from_ns(dice.between(0, 2_000_000));
        let until = from + Span::from_ms(3);
        let kind = FaultKind::Babble(at as u32);
        system.faults.push(Fault { kind, from, until, origin: Origin::default() });
    }
}

fn noise(dice: &mut Dice, system: &mut System) {
    let hosts = hosts(system);
    let from = dice.below(hosts);
    let to = (from + 1 + dice.below(hosts - 1)) % hosts;
    let port = system.node(NodeId(from as u32)).ports[0];
    let payload = dice.one(&[100, 700, 1_470]);
    let wire = frame::on_wire(frame::of_udp(Octets::new(payload))).get();
    let rate = system.link_of(port).rate.as_bps();
    system.noise.push(Noise {
        name: format!("n{}", system.noise.len()),
        from: NodeId(from as u32),
        to: NodeId(to as u32),
        payload: Octets::new(payload),
        interval: Span::from_ns((u64::from(wire) * 8 * 1_000_000_000 / rate) as i64 + 1),
        jitter: dice.chance(50),
        start: NetTime::ZERO,
        on: Span::from_s(1),
        off: Span::ZERO,
        origin: Origin::default(),
    });
}
