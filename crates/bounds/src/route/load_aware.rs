//! Routes that leave no port overloaded, where shortest paths do.
//!
//! Ports negotiate, as wires of a chip do: a channel on an overloaded port looks for the cheapest
//! other path, where an overloaded port is the dearer the more it lacks and the longer it has
//! lacked it. (L. McMurchie and C. Ebeling, *PathFinder: a negotiation-based performance-driven
//! router for FPGAs*, FPGA 1995.) Channels whose shortest paths overload nothing keep them.

use super::exhaustive::{self, Outcome};
use super::{Path, next, own, sends};
use crate::scheduled::{self, Crowded};
use crate::synthesis::multiple;
use crate::{asynchronous, reserve};
use onbeat_model::limits;
use onbeat_model::plan::StreamPlan;
use onbeat_model::port::Selection;
use onbeat_model::system::{Channel, Class, NodeId, NodeKind, Port, PortId, System};
use onbeat_model::time::Span;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

/// What may be reserved of a port, in the unit of loads: parts per billion.
const FULL: u64 = 1_000_000_000;
/// What a channel takes of a port where something else has its queue: more than there is.
const BARRED: u64 = 2 * FULL;
/// What a link costs that lacks nothing.
const HOP: u64 = 10_000;
/// After how many rounds without anything better an attempt ends.
const PATIENCE: u32 = 32;
/// How many attempts are made, each in another order.
const ATTEMPTS: u64 = 64;
/// How many nodes and channels all attempts may look at.
const LOOKS_MAX: u64 = 10_000_000;
/// How much dearer what a port lacks becomes in each round, at most.
const PRESSURE_MAX: u64 = 1 << 16;

/// The channels on their paths, and what these take of each port.
pub(crate) struct Balance<'a> {
    pub(super) system: &'a System,
    /// Whether frames leave ports by their VLAN.
    pub(super) filtered: bool,
    demands: Vec<Demand>,
    limits: Vec<Limits>,
    /// Per port and class whether something else has its queue, by [`CLASSES`].
    barred: Vec<[bool; CLASSES.len()]>,
    /// Per port what all channels take.
    loads: Vec<Load>,
    /// Per port what it costs more for having been overloaded.
    history: Vec<u64>,
    pressure: u64,
    /// The least common multiple of the intervals of scheduled channels, if entries of gate control
    /// lists are counted.
    cycle_ns: Option<u128>,
    /// Per channel and listener, how long a path may take a message that waits nowhere.
    latest: Vec<Vec<Span>>,
    /// How many nodes and channels the search has looked at.
    looks: Cell<u64>,
}

/// First those that take a share of a port's rate.
const CLASSES: [Class; 4] = [Class::A, Class::B, Class::Asynchronous, Class::Scheduled];
/// The place of scheduled channels.
const SCHEDULED: usize = 3;

/// What a channel takes wherever it goes.
enum Demand {
    /// No reservation: it may go anywhere.
    Nothing,
    /// So many bits per second of a class's share, by its place in [`CLASSES`].
    Rate(usize, u64),
    /// A window in each interval.
    Window,
}

/// What may be reserved of a port, in bits per second.
#[derive(Clone, Copy)]
struct Limits {
    /// The idleSlopes that the description gives classes A and B; none for asynchronous.
    set: [Option<u64>; SCHEDULED],
    /// What is left beside the idleSlopes of the description; negative if these are too much.
    left: i128,
}

/// What channels take of a port.
#[derive(Clone, Copy, Default)]
struct Load {
    /// Bits per second of classes A, B and asynchronous.
    rates: [u64; SCHEDULED],
    /// Windows in their intervals, in parts per billion.
    windows: u64,
    /// How many have a queue that something else has.
    barred: u64,
}

/// The ports of a channel's paths, and where they lead.
pub(super) type Tree = Vec<Path>;

impl<'a> Balance<'a> {
    /// All channels on the paths that they have.
    pub(crate) fn new(
        system: &'a System,
        filtered: bool,
        paths: &[Tree],
        streams: &[StreamPlan],
    ) -> Self {
        let ports = system.ports.len();
        // One for each rate: what a channel reserves depends on nothing else.
        let by_rate = (0..ports as u32).map(PortId);
        let by_rate = by_rate.map(|port| (system.link_of(port).rate.as_bps(), port));
        let by_rate: Vec<PortId> = by_rate.collect::<BTreeMap<_, _>>().into_values().collect();
        let most = |channel: &Channel| reserve::reserved_rate(system, channel, &by_rate).as_bps();
        let demand = |channel: &Channel| match channel.class {
            _ if !channel.reserve => Demand::Nothing,
            Class::A => Demand::Rate(0, most(channel)),
            Class::B => Demand::Rate(1, most(channel)),
            Class::Asynchronous => {
                Demand::Rate(2, asynchronous::most_rate(system, channel).as_bps())
            }
            Class::Scheduled => Demand::Window,
        };
        let limit = |port| {
            let ([a, b], left) = reserve::limits(system, PortId(port));
            Limits { set: [a, b, None], left }
        };
        let latest = |(channel, tree): (&Channel, &Tree)| {
            let ends = channel.listeners.iter().zip(tree);
            let latest =
                ends.map(|(to, path)| least(system, channel, *to, path).max(channel.fixed_delay));
            latest.collect()
        };
        let mut balance = Self {
            system,
            filtered,
            demands: system.channels.iter().map(demand).collect(),
            limits: (0..ports as u32).map(limit).collect(),
            barred: barred(system, streams),
            loads: vec![Load::default(); ports],
            history: vec![0; ports],
            pressure: 1,
            cycle_ns: None,
            latest: system.channels.iter().zip(paths).map(latest).collect(),
            looks: Cell::new(0),
        };
        for (channel, tree) in paths.iter().enumerate() {
            balance.put(channel, tree);
        }
        balance
    }

    /// Moves channels until no port between bridges is overloaded, or nothing better is found.
    pub(crate) fn relieve(&mut self, paths: &mut [Tree]) {
        let shortest = paths.to_vec();
        let mut best = (self.lacking(), paths.to_vec());
        for attempt in 0..ATTEMPTS {
            if best.0 == 0 || self.looks.get() > LOOKS_MAX {
                break;
            }
            self.set(paths, &shortest);
            self.history.fill(0);
            self.attempt(attempt, paths, &mut best);
            if attempt == 0 && best.0 > 0 {
                match exhaustive::search(self, paths) {
                    // Channels with several listeners or given paths have not moved.
                    Outcome::Found if self.lacking() < best.0 => {
                        best = (self.lacking(), paths.to_vec());
                    }
                    Outcome::Found => {}
                    Outcome::None => break,
                    Outcome::Unknown => {}
                }
            }
        }
        self.set(paths, &best.1);
        // Who need not have moved goes back.
        for (channel, tree) in shortest.into_iter().enumerate() {
            self.take(channel, &paths[channel]);
            if self.fits(channel, &tree) {
                paths[channel] = tree;
            }
            self.put(channel, &paths[channel]);
        }
    }

    /// Negotiates until nothing is lacking or it gets no better, in an order of its own.
    fn attempt(&mut self, attempt: u64, paths: &mut [Tree], best: &mut (u64, Vec<Tree>)) {
        let mut order: Vec<usize> = (0..paths.len()).collect();
        // First the largest, who have the least choice; then by chance.
        let mut chance = attempt;
        order.sort_by_cached_key(|channel| match attempt {
            0 => Reverse(self.size(*channel)),
            _ => {
                chance = scatter(chance);
                Reverse(chance)
            }
        });
        let (mut least, mut since) = (u64::MAX, 0);
        self.pressure = 1;
        while since < PATIENCE && best.0 > 0 && self.looks.get() < LOOKS_MAX {
            self.negotiate(paths, &order);
            let lacking = self.lacking();
            since += 1;
            if lacking < least {
                (least, since) = (lacking, 0);
            }
            if lacking < best.0 {
                *best = (lacking, paths.to_vec());
            }
            self.pressure = (self.pressure * 2).min(PRESSURE_MAX);
        }
    }

    /// Puts all channels on other trees.
    fn set(&mut self, paths: &mut [Tree], trees: &[Tree]) {
        for (channel, tree) in trees.iter().enumerate() {
            self.take(channel, &paths[channel]);
            self.put(channel, tree);
            paths[channel].clone_from(tree);
        }
    }

    /// Moves channels so that a scheduled one may have room; whether any has moved.
    pub(crate) fn make_room(&mut self, crowded: Crowded, paths: &mut [Tree]) -> bool {
        if crowded.by_entries && self.cycle_ns.is_none() {
            self.count_entries(paths);
            let before = paths.to_vec();
            self.relieve(paths);
            if *paths != *before {
                return true;
            }
        }
        self.avoid(crowded.channel.index(), crowded.port, &mut paths[crowded.channel.index()])
    }

    /// From now on a port also lacks entries of its gate control list.
    fn count_entries(&mut self, paths: &[Tree]) {
        let scheduled = self.system.channels.iter().filter(|c| c.class == Class::Scheduled);
        let cycle = multiple(scheduled.map(|channel| channel.interval.as_ns()));
        for (channel, tree) in paths.iter().enumerate() {
            self.take(channel, tree);
        }
        // What has no common multiple in 64 bits has no list of any length.
        self.cycle_ns = Some(cycle.unwrap_or(i64::MAX) as u128);
        for (channel, tree) in paths.iter().enumerate() {
            self.put(channel, tree);
        }
    }

    /// Moves one channel off a port, if it can go elsewhere. Of a host's port it cannot be moved,
    /// but off the fullest one behind it.
    fn avoid(&mut self, channel: usize, port: PortId, tree: &mut Tree) -> bool {
        if !self.may_move(channel) {
            return false;
        }
        let between = ports(tree).into_iter().filter(|port| self.is_between_bridges(*port));
        let fullest = between.max_by_key(|port| self.usage(*port, &self.loads[port.index()]));
        let Some(port) = Some(port).filter(|port| self.is_between_bridges(*port)).or(fullest)
        else {
            return false;
        };
        self.take(channel, tree);
        self.history.fill(0);
        self.pressure = 1;
        let before = std::mem::replace(&mut self.barred[port.index()], [true; CLASSES.len()]);
        let other = self.cheapest(channel).filter(|other| self.fits(channel, other));
        self.barred[port.index()] = before;
        let moved = other.is_some();
        if let Some(other) = other {
            *tree = other;
        }
        self.put(channel, tree);
        moved
    }

    /// Each channel on an overloaded port looks for another path once.
    fn negotiate(&mut self, paths: &mut [Tree], order: &[usize]) {
        self.looks.set(self.looks.get() + order.len() as u64);
        for channel in order.iter().copied() {
            if self.looks.get() >= LOOKS_MAX {
                return;
            }
            let is_pressed = |port: &PortId| self.lacks(*port) > 0;
            let is_pressed = paths[channel].iter().flatten().any(is_pressed);
            if !is_pressed || !self.may_move(channel) {
                continue;
            }
            self.take(channel, &paths[channel]);
            if let Some(tree) = self.cheapest(channel) {
                paths[channel] = tree;
            }
            self.put(channel, &paths[channel]);
        }
        for port in (0..self.loads.len() as u32).map(PortId) {
            self.history[port.index()] += self.lacks(port).div_ceil(FULL / HOP);
        }
    }

    /// Whether another path of a channel changes anything, and is the plan's to choose.
    pub(super) fn may_move(&self, channel: usize) -> bool {
        !matches!(self.demands[channel], Demand::Nothing)
            && self.system.channels[channel].paths.is_free()
    }

    /// What a channel takes of its talker's port if it is alone there.
    pub(super) fn size(&self, channel: usize) -> u64 {
        let port = self.system.node(self.system.channels[channel].talker).ports[0];
        self.usage(port, &self.with(Load::default(), channel, port))
    }

    pub(super) fn put(&mut self, channel: usize, tree: &Tree) {
        ports(tree).into_iter().for_each(|port| self.enter(channel, port));
    }

    pub(super) fn take(&mut self, channel: usize, tree: &Tree) {
        ports(tree).into_iter().for_each(|port| self.leave(channel, port));
    }

    /// A channel leaves by a port from now on.
    pub(super) fn enter(&mut self, channel: usize, port: PortId) {
        self.loads[port.index()] = self.with(self.loads[port.index()], channel, port);
    }

    /// It does so no more.
    pub(super) fn leave(&mut self, channel: usize, port: PortId) {
        let own = self.with(Load::default(), channel, port);
        let load = &mut self.loads[port.index()];
        for (rate, own) in load.rates.iter_mut().zip(own.rates) {
            *rate -= own;
        }
        load.windows -= own.windows;
        load.barred -= own.barred;
    }

    /// Whether no port of a tree is overloaded with it.
    fn fits(&self, channel: usize, tree: &Tree) -> bool {
        ports(tree).iter().all(|port| self.has_room(channel, *port))
    }

    /// Whether a port is not overloaded with it, or is a host's.
    pub(super) fn has_room(&self, channel: usize, port: PortId) -> bool {
        !self.is_between_bridges(port) || self.usage_with(channel, port) <= FULL
    }

    /// A host has one link: its load is not changed by any path.
    fn is_between_bridges(&self, port: PortId) -> bool {
        is_between_bridges(self.system, port)
    }

    /// What a port lacks.
    fn lacks(&self, port: PortId) -> u64 {
        match self.is_between_bridges(port) {
            true => self.usage(port, &self.loads[port.index()]).saturating_sub(FULL),
            false => 0,
        }
    }

    /// What all ports lack.
    fn lacking(&self) -> u64 {
        (0..self.loads.len() as u32).map(|port| self.lacks(PortId(port))).sum()
    }

    /// A load with that of a channel at a port.
    fn with(&self, mut load: Load, channel: usize, port: PortId) -> Load {
        let class = match self.demands[channel] {
            Demand::Nothing => return load,
            Demand::Rate(class, bps) => {
                load.rates[class] += bps;
                class
            }
            Demand::Window => {
                let channel = &self.system.channels[channel];
                let window = scheduled::window(self.system, channel, port).as_ns() as u128;
                let interval = channel.interval.as_ns() as u128;
                // Each window is followed by a gap.
                let entries = self.cycle_ns.map_or(0, |cycle| 2 * cycle.div_ceil(interval));
                let node = self.system.port(port).node;
                let most = self.system.device_limits(node).entries_max(limits::GATE_ENTRIES);
                let of_list = entries * u128::from(FULL) / most as u128;
                let of_time = window * u128::from(FULL) / interval;
                load.windows += within_bounds(of_list.max(of_time));
                SCHEDULED
            }
        };
        load.barred += u64::from(self.barred[port.index()][class]);
        load
    }

    fn usage_with(&self, channel: usize, port: PortId) -> u64 {
        self.usage(port, &self.with(self.loads[port.index()], channel, port))
    }

    /// How much of what may be reserved of a port a load takes, in parts per billion: exactly up to
    /// all of it if that is so of all channels, else more.
    fn usage(&self, port: PortId, load: &Load) -> u64 {
        let parts = |part: u64, whole: i128| match (part, u128::try_from(whole)) {
            (0, Ok(_)) => 0,
            (part, Ok(whole)) if whole > 0 => {
                within_bounds((u128::from(part) * u128::from(FULL)).div_ceil(whole))
            }
            _ => BARRED,
        };
        let limits = &self.limits[port.index()];
        let (mut usage, mut unset) = (0, 0);
        for (rate, set) in load.rates.into_iter().zip(limits.set) {
            match set {
                Some(slope) if rate > 0 => usage = usage.max(parts(rate, slope.into())),
                Some(_) => {}
                None => unset += rate,
            }
        }
        // Too much is set already, whatever comes.
        if load.rates != [0; SCHEDULED] && limits.left < 0 {
            usage = usage.max(BARRED);
        }
        let unset = if unset == 0 { 0 } else { parts(unset, limits.left) };
        usage.max(unset + load.windows) + BARRED * load.barred
    }

    /// What it costs a channel to leave by a port.
    fn cost(&self, channel: usize, port: PortId) -> u64 {
        let after = self.usage_with(channel, port);
        let lacks = match self.is_between_bridges(port) {
            true => after.saturating_sub(FULL).div_ceil(FULL / 1_000),
            false => 0,
        };
        let pressure = 1_000u64.saturating_add(self.pressure.saturating_mul(lacks));
        let cost = (HOP + self.history[port.index()]).saturating_mul(pressure) / 1_000;
        // Of two that cost the same, the emptier.
        cost.saturating_add(after / (FULL / 1_000)).min(u64::MAX >> 16)
    }

    /// The cheapest tree from the talker to the listeners, grown by the cheapest path to one more
    /// of them each time. None if a listener would get messages after their fixed delay even if
    /// they waited nowhere.
    fn cheapest(&self, channel: usize) -> Option<Tree> {
        let described = &self.system.channels[channel];
        let mut before: Vec<Option<PortId>> = vec![None; self.system.nodes.len()];
        let mut reached = vec![described.talker];
        let others = described.listeners.iter().filter(|to| **to != described.talker);
        let mut left: HashSet<NodeId> = others.copied().collect();
        while !left.is_empty() {
            let (found, path) = self.path(channel, &reached, &left)?;
            for port in path {
                let node = next(self.system, port);
                before[node.index()] = Some(port);
                reached.push(node);
            }
            left.remove(&found);
        }
        let back = |listener: &NodeId| {
            if *listener == described.talker {
                return own(self.system, *listener);
            }
            let mut path = Vec::new();
            let mut at = *listener;
            while at != described.talker {
                let port = before[at.index()].expect("the tree reaches it");
                path.push(port);
                at = self.system.port(port).node;
            }
            path.reverse();
            path
        };
        let tree: Tree = described.listeners.iter().map(back).collect();
        let mut late =
            tree.iter().enumerate().filter(|(at, path)| !self.in_time(channel, *at, path));
        late.next().is_none().then_some(tree)
    }

    /// The cheapest path from what is reached to one of those that are left.
    fn path(
        &self,
        channel: usize,
        reached: &[NodeId],
        left: &HashSet<NodeId>,
    ) -> Option<(NodeId, Path)> {
        let system = self.system;
        let vlan = self.filtered.then_some(system.channels[channel].vlan);
        // Two lists of all nodes are made here.
        self.looks.set(self.looks.get() + system.nodes.len() as u64 / 64);
        let mut costs = vec![u64::MAX; system.nodes.len()];
        let mut through: Vec<Option<PortId>> = vec![None; system.nodes.len()];
        let mut ahead = BinaryHeap::new();
        for node in reached {
            costs[node.index()] = 0;
            ahead.push(Reverse((0, *node)));
        }
        while let Some(Reverse((cost, at))) = ahead.pop() {
            if cost > costs[at.index()] {
                continue;
            }
            self.looks.set(self.looks.get() + 1);
            if left.contains(&at) {
                let mut path = Vec::new();
                let mut node = at;
                while let Some(port) = through[node.index()] {
                    path.push(port);
                    node = system.port(port).node;
                }
                path.reverse();
                return Some((at, path));
            }
            for &port in &system.node(at).ports {
                let to = next(system, port);
                let is_end = matches!(system.node(to).kind, NodeKind::Host(_));
                if (is_end && !left.contains(&to)) || !sends(system, port, vlan) {
                    continue;
                }
                let cost = cost + self.cost(channel, port);
                if cost < costs[to.index()] {
                    costs[to.index()] = cost;
                    through[to.index()] = Some(port);
                    ahead.push(Reverse((cost, to)));
                }
            }
        }
        None
    }

    /// Whether messages may be with a listener within their fixed delay, or as soon as by the
    /// shortest path.
    pub(super) fn in_time(&self, channel: usize, listener: usize, path: &[PortId]) -> bool {
        let described = &self.system.channels[channel];
        let least = least(self.system, described, described.listeners[listener], path);
        least <= self.latest[channel][listener]
    }
}

/// Whether a port's link joins two bridges.
pub(crate) fn is_between_bridges(system: &System, port: PortId) -> bool {
    let mut ends = [system.port(port).node, next(system, port)].into_iter();
    ends.all(|node| matches!(system.node(node).kind, NodeKind::Bridge(_)))
}

/// How long a message takes if it waits nowhere.
pub(crate) fn least(system: &System, channel: &Channel, to: NodeId, path: &[PortId]) -> Span {
    let octets = channel.frame();
    let hops = path.iter().map(|port| {
        let link = system.link_of(*port);
        let (forwarding, sent) = match &system.node(next(system, *port)).kind {
            NodeKind::Bridge(bridge) if bridge.cut_through => (bridge.forwarding, Span::ZERO),
            NodeKind::Bridge(bridge) => (bridge.forwarding, link.rate.time_for(octets)),
            NodeKind::Host(_) => (Span::ZERO, link.rate.time_for(octets)),
        };
        link.propagation + forwarding + sent
    });
    let stacks =
        [(channel.talker, true), (to, false)].map(|(node, sends)| match &system.node(node).kind {
            NodeKind::Host(host) if sends => host.stack_tx.min(),
            NodeKind::Host(host) => host.stack_rx.min(),
            NodeKind::Bridge(_) => Span::ZERO,
        });
    hops.chain(stacks).sum()
}

/// As many parts as can be added up for all channels.
fn within_bounds(parts: u128) -> u64 {
    u64::try_from(parts).unwrap_or(u64::MAX).min(u64::MAX >> 24)
}

/// Per port and class whether something else has its queue.
fn barred(system: &System, streams: &[StreamPlan]) -> Vec<[bool; CLASSES.len()]> {
    let by_settings = |port: &Port| {
        CLASSES.map(|class| match class {
            Class::Scheduled => scheduled::is_barred(system, port),
            Class::Asynchronous => {
                let selection = port.settings.selection[class.queue()];
                matches!(selection, Selection::CreditBased { .. })
            }
            _ => port.settings.selection[class.queue()] == Selection::Asynchronous,
        })
    };
    let mut barred: Vec<_> = system.ports.iter().map(by_settings).collect();
    for (stream, planned) in system.streams.iter().zip(streams) {
        let queue = usize::from(stream.traffic_class);
        let Some(class) = CLASSES.iter().position(|class| class.queue() == queue) else { continue };
        for port in planned.paths.iter().flatten().flatten() {
            // An idleSlope of the description may be for both; schedulers are for each.
            let is_shared = match CLASSES[class] {
                Class::A | Class::B => reserve::is_set(system, *port, queue),
                Class::Asynchronous => true,
                Class::Scheduled => false,
            };
            barred[port.index()][class] |= !is_shared;
        }
    }
    barred
}

/// The next number of a sequence that looks like chance (Steele, Lea and Flood: SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The ports of a tree, each once.
fn ports(tree: &Tree) -> Vec<PortId> {
    let mut seen = HashSet::new();
    tree.iter().flatten().copied().filter(|port| seen.insert(*port)).collect()
}
