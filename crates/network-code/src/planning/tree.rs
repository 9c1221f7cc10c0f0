//! The tree that frames of stations are flooded over, and how long they take to each link.

use super::carried::ChannelFrames;
use super::{BusOptions, codes, refused};
use onbeat_model::dedicated::DedicatedPath;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::port::Selection;
use onbeat_model::system::{NodeId, NodeKind, PortId, System};
use onbeat_model::units::{BitRate, Octets, frame};
use onbeat_runtime::network_code::timing::{CYCLE_NS, Medium};
use std::collections::{BTreeSet, VecDeque};

/// The traffic class of stations' frames: the highest.
const QUEUE: usize = 7;
/// Octets after which a bridge may forward a frame that it does not store: preamble, addresses, tag
/// and EtherType.
const CUT_THROUGH: u32 = 26;
const BILLION: i64 = 1_000_000_000;

/// A link in one direction, with the port that receives from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusLink {
    /// The port that sends onto it.
    pub port: PortId,
    /// The station that receives from it, if one does: an index.
    pub receiver: Option<usize>,
    /// The longest frame of best effort on it, with header and check sequence; 0 if there is none.
    pub best_effort: Octets,
}

/// That a station's frames come to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusPath {
    /// The station: an index.
    pub sender: usize,
    /// The link: an index.
    pub link: usize,
    /// From the first octet of the preamble at the sender to the same octet at the end of the link,
    /// in ns: at least for its shortest frame, at most for its longest one.
    pub delay_ns: [i64; 2],
}

/// How a station's frames come to the port that sends them onto a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The link: an index of [`BroadcastTree::ports`].
    pub(super) link: usize,
    /// The link before it, by its position among the station's arrivals.
    pub(super) before: Option<usize>,
    /// Propagation and forwarding on the way, in ns.
    fixed: i64,
    /// The propagation of the link itself.
    propagation: i64,
    /// How often a whole frame is stored on the way, and how often it may be cut through.
    stored: i64,
    cut: i64,
    /// From the first octet in to the first one out of all dedicated paths on the way, at least and
    /// at most, in ns.
    dedicated: [i64; 2],
    /// How long frames of best effort may block it, in ns.
    blocked: i64,
}

/// The tree.
#[derive(Clone, Debug)]
pub(super) struct BroadcastTree {
    /// What all links are.
    pub(super) medium: Medium,
    /// How far each clock may be from nominal.
    pub(super) drift_ppb: u32,
    /// By how much each station may be late, in ns.
    pub(super) slot_error: i64,
    /// The stations' nodes, by index.
    pub(super) stations: Vec<NodeId>,
    /// The station that begins rounds.
    pub(super) master: usize,
    /// Of each station, how its frames come to all links of the tree, the station's own first.
    pub(super) arrivals: Vec<Vec<Arrival>>,
    /// Of each station, how its frames come to others.
    to_stations: Vec<Vec<Arrival>>,
    /// The ports of the tree, each a direction of a link.
    pub(super) ports: Vec<PortId>,
    best_effort: Vec<Octets>,
}

impl BroadcastTree {
    /// The tree of all stations, or what makes it none.
    pub(super) fn new(
        system: &System,
        frames: &[ChannelFrames],
        options: &BusOptions,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut hosts = BTreeSet::new();
        for frames in frames {
            hosts.insert(frames.talker);
            hosts.extend(&frames.listeners);
        }
        let is_host = |node: NodeId| matches!(system.node(node).kind, NodeKind::Host(_));
        if let Some(node) = options.master {
            if !is_host(node) {
                let name = &system.node(node).name;
                let message = format!("`{name}` is no host: it cannot begin rounds");
                return Err(vec![refused(codes::MASTER, message, "name a host")]);
            }
            hosts.insert(node);
        }
        let stations: Vec<NodeId> = hosts.into_iter().collect();
        let reached = reached(system, stations[0]);
        let ports: Vec<PortId> = (0..system.ports.len() as u32)
            .map(PortId)
            .filter(|port| reached[system.port(*port).node.index()])
            .collect();
        let mut errors = apart(system, &stations, &reached);
        errors.extend(loops(system, &ports));
        errors.extend(pairs(system, &ports));
        errors.extend(settings(system, &ports));
        let rate = medium(system, &ports, &mut errors);
        let (Some(medium), []) = (rate, &errors[..]) else { return Err(errors) };
        let best_effort = best_effort(system, &ports, options);
        let mut tree = Self {
            medium,
            drift_ppb: drift(system, &ports, options),
            slot_error: options.slot_error.unwrap_or(system.run.slot_error).as_ns(),
            arrivals: Vec::new(),
            to_stations: Vec::new(),
            stations,
            master: 0,
            ports,
            best_effort,
        };
        let downlinks: Vec<usize> =
            tree.stations.iter().map(|node| downlink(system, &tree.ports, *node)).collect();
        tree.arrivals = (0..tree.stations.len()).map(|from| tree.flooded(system, from)).collect();
        let to = |arrivals: &Vec<Arrival>, link: usize| {
            arrivals.iter().find(|arrival| arrival.link == link).copied().unwrap_or_default()
        };
        let to_all = |arrivals| downlinks.iter().map(|link| to(arrivals, *link)).collect();
        tree.to_stations = tree.arrivals.iter().map(to_all).collect();
        tree.master = tree.choose_master(options.master);
        Ok(tree)
    }

    /// How frames of a station come to all links.
    fn flooded(&self, system: &System, from: usize) -> Vec<Arrival> {
        let mut arrivals: Vec<Arrival> = Vec::new();
        let own = system.node(self.stations[from]).ports.iter();
        let mut queue: VecDeque<_> = own.map(|port| (*port, Arrival::default())).collect();
        while let Some((port, mut arrival)) = queue.pop_front() {
            let Ok(link) = self.ports.binary_search(&port) else { continue };
            arrival.link = link;
            arrival.propagation = system.link_of(port).propagation.as_ns();
            if system.node(system.port(port).node).best_effort_blocks() {
                arrival.blocked += self.blocks(link);
            }
            arrivals.push(arrival);
            let peer = system.port(port).peer;
            let NodeKind::Bridge(bridge) = system.node(system.port(peer).node).kind else {
                continue;
            };
            arrival.before = Some(arrivals.len() - 1);
            arrival.fixed += arrival.propagation;
            match bridge.dedicated_path {
                Some(path) => {
                    let [least, most] = self.dedicated(path, system.link_of(port).rate);
                    arrival.dedicated[0] += least;
                    arrival.dedicated[1] += most;
                }
                None => {
                    arrival.fixed += bridge.forwarding.as_ns();
                    arrival.stored += i64::from(!bridge.cut_through);
                    arrival.cut += i64::from(bridge.cut_through);
                }
            }
            let others = system.node(system.port(peer).node).ports.iter();
            queue.extend(others.filter(|other| **other != peer).map(|other| (*other, arrival)));
        }
        arrivals
    }

    /// The longest frame of best effort at a port; 0 if there is none.
    pub(super) fn best_effort(&self, port: usize) -> Octets {
        self.best_effort[port]
    }

    /// How long one frame of best effort keeps a port.
    pub(super) fn blocks(&self, port: usize) -> i64 {
        match self.best_effort[port].get() {
            0 => 0,
            octets => self.later(self.octets(frame::on_wire(Octets::new(octets)).get())),
        }
    }

    /// The time of so many octets, nominally.
    fn octets(&self, octets: u32) -> i64 {
        i64::from(octets) * i64::from(self.medium.octet_cycles) * i64::from(CYCLE_NS)
    }

    /// By how much a duration of any clock may be wrong, either way.
    pub(super) fn error(&self, ns: i64) -> i64 {
        let error = i128::from(ns) * i128::from(self.drift_ppb);
        // A duration of years by a drift of 0.1 % at most.
        ((error + i128::from(BILLION) - 1) / i128::from(BILLION)) as i64
    }

    fn later(&self, ns: i64) -> i64 {
        ns + self.error(ns)
    }

    fn earlier(&self, ns: i64) -> i64 {
        ns - self.error(ns)
    }

    /// How long a frame of so many words is on a link: from its preamble to its check sequence.
    pub(super) fn frame(&self, words: u16) -> [i64; 2] {
        let cycles = self.medium.frame_cycles(words).0.cast_signed();
        let ns = cycles * i64::from(CYCLE_NS);
        [self.earlier(ns), self.later(ns)]
    }

    /// The gap behind a frame at most.
    pub(super) fn gap(&self) -> i64 {
        self.later(self.octets(frame::GAP.get()))
    }

    /// The preamble up to the end of the EtherType.
    fn ethertype(&self) -> [i64; 2] {
        let cycles = self.medium.ethertype_cycles().0.cast_signed();
        let ns = cycles * i64::from(CYCLE_NS);
        [self.earlier(ns), self.later(ns)]
    }

    /// How long a dedicated path takes by a clock that is off, and crosses to another one.
    fn dedicated(&self, path: DedicatedPath, rate: BitRate) -> [i64; 2] {
        let start = path.start(rate).as_ns();
        let crossing = self.octets(DedicatedPath::CROSSING.get());
        [self.earlier(start), self.later(start + crossing)]
    }

    /// From when the first octet is to leave the sender to the same octet at the port before a
    /// link: at least of a frame of so many words, at most of one of others, which its sender hands
    /// over late.
    pub(super) fn begin(&self, arrival: &Arrival, words: [u16; 2]) -> [i64; 2] {
        let ([least, _], [_, most]) = (self.frame(words[0]), self.frame(words[1]));
        let cut = self.earlier(self.octets(CUT_THROUGH)).min(least);
        let [passed, latest] = arrival.dedicated;
        let early = arrival.fixed + arrival.stored * least + arrival.cut * cut;
        let late = arrival.fixed + (arrival.stored + arrival.cut) * most + arrival.blocked;
        [early + passed, late + latest + self.slot_error]
    }

    /// The same at the end of the link.
    pub(super) fn delay(&self, arrival: &Arrival, words: [u16; 2]) -> [i64; 2] {
        self.begin(arrival, words).map(|at| at + arrival.propagation)
    }

    /// The same to a station.
    pub(super) fn delay_to(&self, sender: usize, station: usize, words: [u16; 2]) -> [i64; 2] {
        self.at_station(self.delay(&self.to_stations[sender][station], words))
    }

    /// From when to when a station notes what comes in such a time. One that is late is on a
    /// kernel, whose network may be in namespaces: there links take no time.
    pub(super) fn at_station(&self, [early, late]: [i64; 2]) -> [i64; 2] {
        [if self.slot_error > 0 { 0 } else { early }, late]
    }

    /// From the first octet of the beginning of a round to when a slave notes it. A kernel notes
    /// whole frames.
    pub(super) fn noted(&self) -> [i64; 2] {
        let last = if self.slot_error > 0 { self.frame(1) } else { self.ethertype() };
        self.at_station(last)
    }

    /// How long frames of best effort may block a frame on its way to a station.
    pub(super) fn blocked_to(&self, sender: usize, station: usize) -> i64 {
        self.to_stations[sender][station].blocked
    }

    /// The station from which the beginning of a round takes least at worst, or the one that is
    /// asked for.
    fn choose_master(&self, asked: Option<NodeId>) -> usize {
        let worst = |from: &usize| {
            let others = (0..self.stations.len()).filter(|to| to != from);
            others.map(|to| self.delay_to(*from, to, [1; 2])[1]).max()
        };
        let asked = asked.and_then(|node| self.stations.iter().position(|it| *it == node));
        let best = (0..self.stations.len()).min_by_key(worst);
        asked.or(best).unwrap_or(0)
    }

    /// The links, for a verifier.
    pub(super) fn links(&self, system: &System) -> Vec<BusLink> {
        let link = |(index, port): (usize, &PortId)| {
            let node = system.port(system.port(*port).peer).node;
            let receiver = self.stations.iter().position(|station| *station == node);
            BusLink { port: *port, receiver, best_effort: self.best_effort[index] }
        };
        self.ports.iter().enumerate().map(link).collect()
    }
}

/// The nodes that frames of one are flooded to.
fn reached(system: &System, from: NodeId) -> Vec<bool> {
    let mut reached = vec![false; system.nodes.len()];
    reached[from.index()] = true;
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        // Hosts forward nothing.
        if node != from && matches!(system.node(node).kind, NodeKind::Host(_)) {
            continue;
        }
        for port in &system.node(node).ports {
            let other = system.port(system.port(*port).peer).node;
            if !std::mem::replace(&mut reached[other.index()], true) {
                queue.push_back(other);
            }
        }
    }
    reached
}

fn downlink(system: &System, ports: &[PortId], host: NodeId) -> usize {
    let own = system.node(host).ports.first();
    let peer = own.map(|port| system.port(*port).peer);
    peer.and_then(|port| ports.binary_search(&port).ok()).unwrap_or(0)
}

fn apart(system: &System, stations: &[NodeId], reached: &[bool]) -> Vec<Diagnostic> {
    let lost = stations.iter().filter(|node| !reached[node.index()]);
    let error = |node: &NodeId| {
        let (node, from) = (system.node(*node), &system.node(stations[0]).name);
        let message = format!("`{}` and `{from}` are not in one network", node.name);
        Diagnostic::error(codes::TOPOLOGY, message, node.origin, "is apart")
            .help("link their networks, or describe them apart: all stations share rounds")
    };
    lost.map(error).collect()
}

/// The first link of the tree's nodes that makes it none.
fn loops(system: &System, ports: &[PortId]) -> Option<Diagnostic> {
    let mut group: Vec<usize> = (0..system.nodes.len()).collect();
    let link = system.links.iter().filter(|link| ports.binary_search(&link.ports[0]).is_ok());
    let mut closing = link.filter(|link| {
        let [one, other] = link.ports.map(|port| group[system.port(port).node.index()]);
        group.iter_mut().filter(|of| **of == one).for_each(|of| *of = other);
        one == other
    });
    let link = closing.next()?;
    let [one, other] = link.ports.map(|port| system.port_label(port));
    let message = format!(
        "the link from {one} to {other} closes a loop: which links carry what is flooded is not \
         known"
    );
    let error = Diagnostic::error(codes::TOPOLOGY, message, link.origin, "closes a loop");
    Some(error.help("describe the tree that bridges make of the network, without this link"))
}

/// Bridges whose dedicated path two frames could want at once that share no link: those that go
/// opposite ways over two links. Where there are three, both go to the third one.
fn pairs(system: &System, ports: &[PortId]) -> Vec<Diagnostic> {
    let nodes: BTreeSet<NodeId> = ports.iter().map(|port| system.port(*port).node).collect();
    let is_pair = |node: &NodeId| system.node(*node).has_dedicated_pair();
    let error = |node: NodeId| {
        let node = system.node(node);
        let message = format!(
            "`{}` has a dedicated path and two links: frames of both may meet on it, and one is \
             dropped",
            node.name
        );
        Diagnostic::error(codes::TOPOLOGY, message, node.origin, "has two links")
            .help("remove `dedicated_path`, or the bridge")
    };
    nodes.into_iter().filter(is_pair).map(error).collect()
}

/// Ports that do not send stations' frames first.
fn settings(system: &System, ports: &[PortId]) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    for id in ports {
        let (label, settings) = (system.port_label(*id), &system.port(*id).settings);
        let mut refuse = |what: &str, help: &str| {
            let message = format!("port {label} {what}");
            errors.push(refused(codes::PORT, message, help));
        };
        if !settings.gates.is_empty() {
            refuse("has gates", "remove its `gates`: frames of stations need no windows");
        }
        if settings.selection[QUEUE] != Selection::StrictPriority {
            refuse("shapes queue 7", "remove the shaper: frames of stations go first");
        }
        if settings.preemptable >> QUEUE & 1 == 1 {
            refuse("may interrupt queue 7", "make the queue express");
        }
        if settings.vlans.is_some() {
            refuse("has VLANs of its own", "remove its `vlans`: frames are flooded everywhere");
        }
    }
    errors
}

/// What all links are, if they are alike.
fn medium(system: &System, ports: &[PortId], errors: &mut Vec<Diagnostic>) -> Option<Medium> {
    let first = ports.first()?;
    let rate = system.link_of(*first).rate;
    if let Some(other) = ports.iter().find(|port| system.link_of(**port).rate != rate) {
        let link = system.link_of(*other);
        let (one, other) = (system.port_label(*first), system.port_label(*other));
        let message = format!("the link of {one} has {rate}, that of {other} has {}", link.rate);
        let error = Diagnostic::error(codes::RATE, message, link.origin, "has another rate");
        errors.push(error.help("use links of one rate: bridges of rounds pass frames on at once"));
        return None;
    }
    let rates = [(1_000, 1), (100, 10), (10, 100)];
    let found = rates.iter().find(|(mbps, _)| rate == BitRate::from_mbps(*mbps));
    if found.is_none() {
        let link = system.link_of(*first);
        let message = format!("stations send over 1 Gb/s, 100 Mb/s or 10 Mb/s, not over {rate}");
        let error = Diagnostic::error(codes::RATE, message, link.origin, "has this rate");
        errors.push(error.help("use links of one of these rates"));
    }
    found.map(|(_, octet_cycles)| Medium { octet_cycles: *octet_cycles, tagged: true })
}

/// The limit of all clocks' drifts, with the slopes of their wander.
fn drift(system: &System, ports: &[PortId], options: &BusOptions) -> u32 {
    let nodes: BTreeSet<NodeId> = ports.iter().map(|port| system.port(*port).node).collect();
    let of_node = |node: &NodeId| {
        let clock = system.clock_of(*node);
        let slope = 4 * i128::from(clock.wander.as_ns()) * i128::from(BILLION);
        let period = i128::from(clock.wander_period.as_ns().max(1));
        let wander = if slope == 0 { 0 } else { (slope + period - 1) / period };
        u32::try_from(i128::from(clock.drift_ppb.unsigned_abs()) + wander).unwrap_or(u32::MAX)
    };
    nodes.iter().map(of_node).max().unwrap_or(0).max(options.drift_ppb)
}

/// The longest frame of best effort behind each port.
fn best_effort(system: &System, ports: &[PortId], options: &BusOptions) -> Vec<Octets> {
    let mut everywhere = options.best_effort;
    if system.synchronisation.is_some_and(|it| it.in_run) {
        everywhere = everywhere.max(frame::of_gptp(system.nodes.len()));
    }
    let learns = |kind: &NodeKind| matches!(kind, NodeKind::Bridge(bridge) if bridge.learning);
    let floods = system.nodes.iter().any(|node| learns(&node.kind));
    let noise = system.noise.iter().map(|noise| frame::of_udp(noise.payload));
    if floods {
        everywhere = everywhere.max(noise.max().unwrap_or_default());
        return vec![everywhere; ports.len()];
    }
    let mut longest = vec![everywhere; ports.len()];
    for noise in &system.noise {
        for port in path(system, ports, noise.from, noise.to) {
            longest[port] = longest[port].max(frame::of_udp(noise.payload));
        }
    }
    longest
}

/// The ports from one node of a tree to another one.
fn path(system: &System, ports: &[PortId], from: NodeId, to: NodeId) -> Vec<usize> {
    let mut before: Vec<Option<PortId>> = vec![None; system.nodes.len()];
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for port in &system.node(node).ports {
            let other = system.port(system.port(*port).peer).node;
            if other != from && before[other.index()].is_none() {
                before[other.index()] = Some(*port);
                queue.push_back(other);
            }
        }
    }
    let mut path = Vec::new();
    let mut at = to;
    while at != from {
        let Some(port) = before[at.index()] else { return Vec::new() };
        path.extend(ports.binary_search(&port).ok());
        at = system.port(port).node;
    }
    path
}
