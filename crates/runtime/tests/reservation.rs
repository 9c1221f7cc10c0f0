//! Random networks of stations and bridges in virtual time, whose PDUs are lost and reordered,
//! whose nodes crash and whose links fail. Bandwidth never leaks and never exceeds three quarters
//! of a port; when the network is calm, within the time that the timers give, each listener is
//! ready or is told which bridge refuses and why, and the reason is true.
//!
//! `ONBEAT_RESERVATION_SYSTEMS=10000` runs as many systems, from `ONBEAT_RESERVATION_SEED` on.

use onbeat_model::system::Class;
use onbeat_model::time::{NetTime, Span};
use onbeat_model::units::{BitRate, MacAddress, StreamId};
use onbeat_runtime::mrp::{MrpInput, MrpSettings, Propagation, PropagationInput};
use onbeat_runtime::msrp::{
    BridgeAction, BridgeId, BridgeInput, ListenerStatus, MsrpBridge, MsrpBridgeSettings, MsrpPort,
    MsrpStation, Rank, StationAction, StationInput, StationSettings, StreamRequest, TSpec,
    TalkerStatus,
};
use onbeat_runtime::mvrp::{Mvrp, Vid};
use onbeat_testkit::Random;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;
/// How long nothing is sure.
const CHAOS: i64 = 30 * S;
/// Of 100 PDUs, how many are lost meanwhile.
const LOST_PERCENT: u64 = 30;
/// The longest delay of a link meanwhile; the order is lost with it. Then all take the least.
const DELAY: [i64; 2] = [MS / 10, 40 * MS];
/// Longest time between two LeaveAll, and LeaveTime.
const LEAVE_ALL: i64 = 15 * S;
const LEAVE: i64 = 600 * MS;

enum Machine {
    Bridge(Box<MsrpBridge>, Box<Propagation<Mvrp>>),
    Station(Box<MsrpStation>),
}

struct Node {
    machine: Machine,
    runs: bool,
    /// The links at its ports.
    links: Vec<usize>,
    starts: u64,
}

struct Link {
    ends: [(usize, usize); 2],
    rate: BitRate,
    is_up: bool,
}

/// A stream: its talker and what it asks for.
struct Offer {
    talker: usize,
    request: StreamRequest,
    is_offered: bool,
    listeners: BTreeSet<usize>,
}

/// What happens at an instant.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Frame { node: usize, port: usize, is_vlan: bool, octets: Vec<u8> },
    Act,
    Restart(usize),
    LinkUp(usize),
    Calm,
}

struct System {
    random: Random,
    seed: u64,
    nodes: Vec<Node>,
    links: Vec<Link>,
    offers: Vec<Offer>,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    count: u64,
    now: i64,
    is_calm: bool,
    is_mesh: bool,
    bridges: usize,
    /// Per node and port: whether it forwards, and whether it is Designated.
    roles: BTreeMap<(usize, usize), (bool, bool)>,
    last_change: i64,
}

fn at(ns: i64) -> NetTime {
    NetTime::from_ns(ns)
}

fn identifier(node: usize) -> BridgeId {
    BridgeId([0x80, 0, 2, 0, 0, 0, 0, node as u8])
}

impl System {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let bridges = 1 + random.index(6);
        let stations = 2 + random.index(7);
        let mut ends: Vec<(usize, usize)> = (1..bridges).map(|n| (random.index(n), n)).collect();
        let is_mesh = bridges > 2 && random.percent(40);
        for _ in 0..if is_mesh { 1 + random.index(3) } else { 0 } {
            let (a, b) = (random.index(bridges), random.index(bridges));
            if a != b {
                ends.push((a, b));
            }
        }
        ends.extend((0..stations).map(|n| (random.index(bridges), bridges + n)));
        let rates = [BitRate::from_mbps(100), BitRate::from_mbps(1_000)];
        let mut ports = vec![0; bridges + stations];
        let mut links = Vec::new();
        for (a, b) in ends {
            let ends = [a, b].map(|node| {
                ports[node] += 1;
                (node, ports[node] - 1)
            });
            links.push(Link { ends, rate: rates[usize::from(random.percent(20))], is_up: true });
        }
        let mut system = Self {
            seed,
            nodes: Vec::new(),
            links,
            offers: Vec::new(),
            events: BinaryHeap::new(),
            count: 0,
            now: 0,
            is_calm: false,
            is_mesh,
            bridges,
            roles: BTreeMap::new(),
            last_change: 0,
            random,
        };
        for node in 0..bridges + stations {
            let of_node = |link: &Link| link.ends.iter().any(|end| end.0 == node);
            let all = system.links.iter().enumerate().filter(|(_, link)| of_node(link));
            let links: Vec<usize> = all.map(|(index, _)| index).collect();
            let machine = system.machine(node, 0, &links);

            system.nodes.push(Node { machine, runs: true, links, starts: 0 });
        }
        for number in 0..1 + system.random.index(10) as u64 {
            let offer = system.draw_offer(number, stations);
            system.offers.push(offer);
        }
        system.span();
        for _ in 0..20 + system.random.index(60) {
            let when = system.random.between(0, CHAOS);
            system.push(when, Event::Act);
        }
        system.push(CHAOS, Event::Calm);
        system
    }

    fn draw_offer(&mut self, number: u64, stations: usize) -> Offer {
        let random = &mut self.random;
        let class = if random.percent(70) { Class::A } else { Class::B };
        // Four of the longest fit in 100 Mb/s in class B, none in class A.
        let tspec = TSpec {
            max_frame_size: random.between(1, 900) as u16,
            max_interval_frames: if random.percent(90) { 1 } else { 2 },
        };
        let request = StreamRequest {
            stream: StreamId(0x0200_0000_0000_0000 + number * 3 / 2),
            destination: MacAddress([0x91, 0xe0, 0xf0, 0, 1, number as u8]),
            class,
            tspec,
            rank: if random.percent(15) { Rank::Emergency } else { Rank::Normal },
            latency: Span::from_us(125),
        };
        let talker = self.bridges + random.index(stations);
        Offer { talker, request, is_offered: false, listeners: BTreeSet::new() }
    }

    /// A node as it starts.
    fn machine(&self, node: usize, start: u64, links: &[usize]) -> Machine {
        let seed = self.seed.wrapping_mul(31).wrapping_add(node as u64 * 1_000 + start);
        let now = at(self.now);
        if node >= self.bridges {
            let station = MsrpStation::new(StationSettings::default(), seed, now);
            return Machine::Station(Box::new(station));
        }
        let port = |link: &usize| MsrpPort::new(self.links[*link].rate, Span::from_us(5));
        let ports: Vec<_> = links.iter().map(port).collect();
        let settings = MsrpBridgeSettings::new(identifier(node));
        let bridge = MsrpBridge::new(settings, &ports, seed, now);
        let vlans = Propagation::new(MrpSettings::default(), ports.len(), !seed, now);
        Machine::Bridge(Box::new(bridge), Box::new(vlans))
    }

    fn push(&mut self, when: i64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((when, self.count, event)));
    }

    fn run(&mut self, until: i64) {
        loop {
            let timer = |(index, node): (usize, &Node)| {
                let due = match &node.machine {
                    Machine::Bridge(bridge, vlans) => bridge.next().min(vlans.next()),
                    Machine::Station(station) => station.next(),
                };
                node.runs.then_some((due.as_ns(), index))
            };
            let timer = self.nodes.iter().enumerate().filter_map(timer).min();
            let event = self.events.peek().map(|Reverse((when, ..))| *when);
            let next = timer.map(|(due, _)| due).into_iter().chain(event).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if event == Some(next) {
                let Some(Reverse((.., event))) = self.events.pop() else { break };
                self.happen(event);
            } else if let Some((_, node)) = timer {
                self.tell(node, |machine, now| match machine {
                    Machine::Bridge(bridge, vlans) => (
                        bridge.handle(now, BridgeInput::Timeout),
                        vlans.handle(now, PropagationInput::Timeout),
                        Vec::new(),
                    ),
                    Machine::Station(station) => {
                        (Vec::new(), Vec::new(), station.handle(now, StationInput::Timeout))
                    }
                });
            }
        }
        self.now = until;
    }

    /// Tells a node something, and takes what it does.
    #[allow(clippy::type_complexity, reason = "three lists of three kinds of actions")]
    fn tell(
        &mut self,
        node: usize,
        what: impl FnOnce(
            &mut Machine,
            NetTime,
        ) -> (Vec<BridgeAction>, Vec<(usize, Vec<u8>)>, Vec<StationAction>),
    ) {
        if !self.nodes[node].runs {
            return;
        }
        let (bridge, vlans, station) = what(&mut self.nodes[node].machine, at(self.now));
        for action in bridge {
            match action {
                BridgeAction::Send { port, octets } => self.send(node, port, false, octets),
                BridgeAction::SetIdleSlope { .. } | BridgeAction::SetPorts { .. } => {
                    self.last_change = self.now;
                }
            }
        }
        for (port, octets) in vlans {
            self.send(node, port, true, octets);
        }
        for action in station {
            match action {
                StationAction::SendMsrp(octets) => self.send(node, 0, false, octets),
                StationAction::SendMvrp(octets) => self.send(node, 0, true, octets),
                _ => self.last_change = self.now,
            }
        }
        self.is_within_limits(node);
    }

    fn send(&mut self, node: usize, port: usize, is_vlan: bool, octets: Vec<u8>) {
        let link = &self.links[self.nodes[node].links[port]];
        let (node, port) = link.ends[usize::from(link.ends[0] == (node, port))];
        if !link.is_up || !self.is_calm && self.random.percent(LOST_PERCENT) {
            return;
        }
        let latest = if self.is_calm { DELAY[0] } else { DELAY[1] };
        let when = self.now + self.random.between(DELAY[0], latest);
        self.push(when, Event::Frame { node, port, is_vlan, octets });
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Frame { node, port, is_vlan, octets } => {
                self.tell(node, |machine, now| match (machine, is_vlan) {
                    (Machine::Bridge(bridge, _), false) => {
                        let input = BridgeInput::Received { port, octets: &octets };
                        (bridge.handle(now, input), Vec::new(), Vec::new())
                    }
                    (Machine::Bridge(_, vlans), true) => {
                        let input = PropagationInput::Port(port, MrpInput::Received(&octets));
                        (Vec::new(), vlans.handle(now, input), Vec::new())
                    }
                    (Machine::Station(station), is_vlan) => {
                        let input = match is_vlan {
                            true => StationInput::Mvrp(&octets),
                            false => StationInput::Msrp(&octets),
                        };
                        (Vec::new(), Vec::new(), station.handle(now, input))
                    }
                });
            }
            Event::Act => self.act(),
            Event::Restart(node) => self.restart(node),
            Event::LinkUp(link) => self.set_link(link, true),
            Event::Calm => {
                self.is_calm = true;
                for link in 0..self.links.len() {
                    self.set_link(link, true);
                }
                for node in 0..self.nodes.len() {
                    self.restart(node);
                }
            }
        }
    }

    /// Something that users, power supplies and cables do.
    fn act(&mut self) {
        let offer = self.random.index(self.offers.len());
        let node = self.random.index(self.nodes.len());
        match self.random.index(100) {
            0..35 => {
                let wants = !self.offers[offer].is_offered || self.random.percent(30);
                self.offers[offer].is_offered = wants;
                let node = self.offers[offer].talker;
                self.apply_offer(offer, node);
            }
            35..85 => {
                let station = self.bridges + self.random.index(self.nodes.len() - self.bridges);
                let Offer { talker, listeners, .. } = &mut self.offers[offer];
                if station == *talker || !listeners.insert(station) {
                    listeners.remove(&station);
                }
                self.apply_offer(offer, station);
            }
            85..94 => {
                // Its neighbours may notice.
                if self.random.percent(50) {
                    for link in self.nodes[node].links.clone() {
                        self.flap(link);
                    }
                }
                self.nodes[node].runs = false;
                let when = self.now + self.random.between(0, 5 * S);
                self.push(when, Event::Restart(node));
            }
            _ => {
                let link = self.random.index(self.links.len());
                self.flap(link);
            }
        }
    }

    fn flap(&mut self, link: usize) {
        self.set_link(link, false);
        let when = self.now + self.random.between(1, 5 * S);
        self.push(when, Event::LinkUp(link));
    }

    /// Lets a station know what its user wants.
    fn apply_offer(&mut self, offer: usize, station: usize) {
        let Offer { talker, request, is_offered, listeners } = &self.offers[offer];
        let (talks, listens) = (*talker == station && *is_offered, listeners.contains(&station));
        let request = *request;
        if !self.nodes[station].runs {
            return;
        }
        let now = at(self.now);
        let Machine::Station(machine) = &mut self.nodes[station].machine else { return };
        match talks {
            true => {
                machine.advertise(now, request);
            }
            false => machine.withdraw(now, request.stream),
        }
        match listens {
            true => {
                machine.listen(request.stream);
            }
            false => machine.leave(now, request.stream),
        }
    }

    /// A node starts with nothing but what its users want.
    fn restart(&mut self, node: usize) {
        if self.nodes[node].runs {
            return;
        }
        self.nodes[node].starts += 1;
        let links = self.nodes[node].links.clone();
        let machine = self.machine(node, self.nodes[node].starts, &links);
        (self.nodes[node].machine, self.nodes[node].runs) = (machine, true);
        for (port, link) in links.iter().enumerate() {
            if !self.links[*link].is_up {
                self.tell_link(node, port, false);
            }
            if let Some((forwards, _)) = self.roles.get(&(node, port)).copied() {
                self.tell_forwarding(node, port, forwards);
            }
        }
        for offer in 0..self.offers.len() {
            self.apply_offer(offer, node);
        }
    }

    fn tell_link(&mut self, node: usize, port: usize, is_up: bool) {
        self.tell(node, |machine, now| match machine {
            Machine::Bridge(bridge, vlans) => {
                let of_port = |input| PropagationInput::Port(port, input);
                match is_up {
                    true => (
                        bridge.handle(now, BridgeInput::LinkUp(port)),
                        vlans.handle(now, of_port(MrpInput::LinkUp)),
                        Vec::new(),
                    ),
                    false => (
                        bridge.handle(now, BridgeInput::LinkDown(port)),
                        vlans.handle(now, of_port(MrpInput::LinkDown)),
                        Vec::new(),
                    ),
                }
            }
            Machine::Station(station) => {
                let input = if is_up { StationInput::LinkUp } else { StationInput::LinkDown };
                (Vec::new(), Vec::new(), station.handle(now, input))
            }
        });
    }

    fn tell_forwarding(&mut self, node: usize, port: usize, forwards: bool) {
        self.tell(node, |machine, now| match machine {
            Machine::Bridge(bridge, vlans) => (
                bridge.handle(now, BridgeInput::Forwards(port, forwards)),
                vlans.handle(now, PropagationInput::Forwards(port, forwards)),
                Vec::new(),
            ),
            Machine::Station(_) => (Vec::new(), Vec::new(), Vec::new()),
        });
    }

    fn set_link(&mut self, link: usize, is_up: bool) {
        if self.links[link].is_up == is_up {
            return;
        }
        self.links[link].is_up = is_up;
        for (node, port) in self.links[link].ends {
            self.tell_link(node, port, is_up);
        }
        self.span();
    }

    /// By node: its parent in the spanning tree of its part, and the link to it.
    fn tree(&self) -> Vec<Option<(usize, usize)>> {
        let mut parents = vec![None; self.nodes.len()];
        let mut seen = BTreeSet::new();
        for root in 0..self.nodes.len() {
            if !seen.insert(root) {
                continue;
            }
            let mut ahead = vec![root];
            while let Some(node) = ahead.pop() {
                for (number, link) in self.links.iter().enumerate() {
                    let [a, b] = link.ends.map(|end| end.0);
                    let other = if a == node { b } else { a };
                    if link.is_up && (a == node || b == node) && seen.insert(other) {
                        parents[other] = Some((node, number));
                        ahead.push(other);
                    }
                }
            }
        }
        parents
    }

    /// Computes the spanning tree again, and tells the bridges what their ports are now.
    fn span(&mut self) {
        let tree = self.tree();
        let is_in_tree: BTreeSet<_> = tree.iter().flatten().map(|(_, link)| *link).collect();
        for (node, parent) in tree.iter().enumerate().take(self.bridges) {
            for port in 0..self.nodes[node].links.len() {
                let link = self.nodes[node].links[port];
                let forwards = is_in_tree.contains(&link);
                let designated = forwards && parent.is_none_or(|(_, up)| up != link);
                let role = (forwards, designated);
                let Some(before) = self.roles.insert((node, port), role) else {
                    self.tell_forwarding(node, port, forwards);
                    continue;
                };
                self.tell_forwarding(node, port, forwards);
                if before.1 != designated {
                    self.tell(node, |machine, now| match machine {
                        Machine::Bridge(bridge, vlans) => {
                            let (input, of_vlans) = match designated {
                                true => (BridgeInput::Flush(port), MrpInput::Flush),
                                false => (BridgeInput::Redeclare(port), MrpInput::Redeclare),
                            };
                            let of_vlans = PropagationInput::Port(port, of_vlans);
                            (bridge.handle(now, input), vlans.handle(now, of_vlans), Vec::new())
                        }
                        Machine::Station(_) => (Vec::new(), Vec::new(), Vec::new()),
                    });
                }
            }
        }
    }

    /// What a stream takes, counted here: a frame of 68 octets at least, preamble, gap, and one.
    fn rate(request: &StreamRequest) -> u64 {
        let frame = (u64::from(request.tspec.max_frame_size) + 22).max(68) + 20 + 1;
        let intervals = if request.class == Class::A { 8_000 } else { 4_000 };
        frame * 8 * u64::from(request.tspec.max_interval_frames) * intervals
    }

    fn offer(&self, stream: StreamId) -> &Offer {
        let found = self.offers.iter().find(|offer| offer.request.stream == stream);
        found.unwrap_or_else(|| panic!("seed {}: {stream:?} is no stream", self.seed))
    }

    /// A bridge never reserves more than three quarters, nor more or less than its streams take.
    fn is_within_limits(&self, node: usize) {
        let Machine::Bridge(bridge, _) = &self.nodes[node].machine else { return };
        for (port, link) in self.nodes[node].links.iter().enumerate() {
            let rates = bridge.reserved(port).map(|stream| Self::rate(&self.offer(stream).request));
            let sum: u64 = rates.sum();
            let slopes: u64 = bridge.idle_slopes(port).iter().map(|slope| slope.as_bps()).sum();
            let place = format!("seed {}: {} ns, node {node}, port {port}", self.seed, self.now);
            assert_eq!(sum, slopes, "{place}");
            assert!(sum * 4 <= self.links[*link].rate.as_bps() * 3, "{place}: {sum}");
        }
    }

    /// The bridges from a talker to a listener with the ports by which they send to it; `None` if
    /// they are in different parts.
    fn path(&self, tree: &[Option<(usize, usize)>], from: usize, to: usize) -> Vec<(usize, usize)> {
        let up = |mut node: usize| {
            let mut all = vec![(node, None)];
            while let Some((parent, link)) = tree[node] {
                all.push((parent, Some(link)));
                node = parent;
            }
            all
        };
        let (from, to) = (up(from), up(to));
        let meet = |node: usize| to.iter().any(|(other, _)| *other == node);
        let Some(top) = from.iter().position(|(node, _)| meet(*node)) else { return Vec::new() };
        let mut path = Vec::new();
        let port = |node: usize, link: usize| {
            self.nodes[node].links.iter().position(|own| *own == link).expect("a port")
        };
        for pair in from[..=top].windows(2).skip(1) {
            let (node, link) = (pair[0].0, pair[1].1.expect("a link"));
            path.push((node, port(node, link)));
        }
        let below = to.iter().position(|(node, _)| *node == from[top].0).expect("met");
        for pair in to[..=below].windows(2).rev() {
            let (node, link) = (pair[1].0, pair[1].1.expect("a link"));
            path.push((node, port(node, link)));
        }
        path
    }

    /// How the network is to be when all has settled.
    fn check(&self) -> (usize, usize) {
        let tree = self.tree();
        let (mut ready, mut refused) = (0, 0);
        let mut reserved = BTreeSet::new();
        for offer in &self.offers {
            let mut outcomes = Vec::new();
            for listener in &offer.listeners {
                let place = format!("seed {}, listener {listener}", self.seed);
                let path = self.path(&tree, offer.talker, *listener);
                let Machine::Station(station) = &self.nodes[*listener].machine else { continue };
                let status = station.listener(offer.request.stream);
                match status.unwrap_or_else(|| panic!("{place}")) {
                    ListenerStatus::NoTalker => assert!(!offer.is_offered, "{place}"),
                    ListenerStatus::Ready(_) => {
                        assert!(offer.is_offered, "{place}");
                        reserved.extend(path.iter().map(|hop| (*hop, offer.request.stream)));
                        outcomes.push(true);
                    }
                    ListenerStatus::Failed(failure) => {
                        assert!(offer.is_offered, "{place}");
                        let hop = path.iter().find(|(node, _)| identifier(*node) == failure.bridge);
                        let hop = hop.unwrap_or_else(|| panic!("{place}: {failure:?} on {path:?}"));
                        self.is_true(offer, *hop, failure.code.0, &place);
                        outcomes.push(false);
                    }
                    other => panic!("{place}: {other:?}"),
                }
            }
            ready += outcomes.iter().filter(|ready| **ready).count();
            refused += outcomes.iter().filter(|ready| !**ready).count();
            let Machine::Station(station) = &self.nodes[offer.talker].machine else { continue };
            let expected = match (outcomes.contains(&true), outcomes.contains(&false)) {
                _ if !offer.is_offered => None,
                (true, false) => Some(TalkerStatus::Ready),
                (true, true) => Some(TalkerStatus::ReadyFailed),
                (false, true) => Some(TalkerStatus::AskingFailed),
                (false, false) => Some(TalkerStatus::Advertised),
            };
            let status = station.talker(offer.request.stream);
            assert_eq!(status, expected, "seed {}, {:?}", self.seed, offer.request);
        }
        // What is reserved is exactly what the ready ones need.
        for (number, node) in self.nodes.iter().enumerate() {
            let Machine::Bridge(bridge, vlans) = &node.machine else { continue };
            for port in 0..node.links.len() {
                let needed = reserved.iter().filter(|(hop, _)| *hop == (number, port));
                let needed: BTreeSet<_> = needed.map(|(_, stream)| *stream).collect();
                let there: BTreeSet<_> = bridge.reserved(port).collect();
                assert_eq!(there, needed, "seed {}: node {number}, port {port}", self.seed);
                let vid = Vid::new(2).expect("a VLAN");
                let is_registered = vlans.ports_of(vid).any(|other| other == port);
                assert!(needed.is_empty() || is_registered, "seed {}: VLAN", self.seed);
            }
        }
        (ready, refused)
    }

    /// Whether a refusal has the reason that it gives.
    fn is_true(&self, offer: &Offer, (node, port): (usize, usize), code: u8, place: &str) {
        let Machine::Bridge(bridge, _) = &self.nodes[node].machine else { return };
        let others: Vec<_> = bridge.reserved(port).map(|stream| self.offer(stream)).collect();
        let rates = others.iter().map(|other| Self::rate(&other.request));
        let sum = rates.sum::<u64>() + Self::rate(&offer.request);
        let most = self.links[self.nodes[node].links[port]].rate.as_bps() / 4 * 3;
        let emergency = others.iter().any(|other| other.request.rank == Rank::Emergency);
        match code {
            1 | 3 => assert!(sum > most, "{place}: code {code}, {sum} of {most}"),
            6 => assert!(sum > most && emergency, "{place}: code 6, {sum} of {most}"),
            // Another path may be longer than the one that the talker was first reported by.
            7 => assert!(self.is_mesh, "{place}: code 7 in a tree"),
            other => panic!("{place}: code {other}"),
        }
    }

    /// How long it may take to settle. What was left without a word ages within LeaveAllTime and
    /// LeaveTime at the first bridge, and within LeaveTime at each further one; each hop then waits
    /// for an opportunity to transmit, forth and back, for what leaves and what comes instead.
    fn bound(&self) -> i64 {
        let hops = self.bridges as i64 + 1;
        LEAVE_ALL + LEAVE + hops * (LEAVE + 300 * MS) + 4 * hops * 300 * MS
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn reservations_settle_in_random_networks_and_none_leaks() {
    let (first, count) =
        (number("ONBEAT_RESERVATION_SEED", 1), number("ONBEAT_RESERVATION_SYSTEMS", 300));
    let (mut ready, mut refused, mut slowest) = (0, 0, 0);
    for seed in first..first + count {
        let mut system = System::new(seed);
        system.run(CHAOS + system.bound());
        let took = system.last_change - CHAOS;
        let outcome = system.check();
        // Two further LeaveAll at each port change nothing.
        system.run(CHAOS + system.bound() + 2 * LEAVE_ALL + S);
        assert_eq!(system.last_change - CHAOS, took, "seed {seed}: nothing flaps");
        (ready, refused) = (ready + outcome.0, refused + outcome.1);
        slowest = slowest.max(took);
    }
    println!("{count} systems: {ready} ready, {refused} refused, the slowest took {slowest} ns");
    assert!(ready as u64 > count && refused as u64 > count / 4, "{ready} ready, {refused} refused");
}
