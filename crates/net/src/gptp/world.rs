//! The simulation's events: nodes wake, messages leave and arrive, clocks are looked at.

use crate::gptp::oscillator::{FreeClock, Stamper};
use crate::gptp::trace::{NodeSummary, Sample, Trace};
use crate::gptp::{Fault, Scenario};
use crate::random::{Purpose, Stream};
use onbeat_model::time::{LocalTime, NetTime, Span};
use onbeat_runtime::gptp::{
    Action, ClockIdentity, Condition, Event, Fine, Line, Node, Settings, SystemIdentity, Ticket,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// All nodes start within this.
const START_WITHIN_NS: u64 = 1_000_000_000;

#[derive(Debug)]
enum Happening {
    Start(usize),
    Wake(usize),
    Leave { node: usize, port: usize, octets: Vec<u8>, ticket: Option<Ticket> },
    Arrive { node: usize, port: usize, link: usize, octets: Vec<u8> },
    Stop(usize),
    LinkDown(usize),
    LinkUp(usize),
    Sample,
}

/// What happens when; events of one instant in the order in which they were asked for.
#[derive(Debug)]
struct Entry {
    key: (NetTime, u64),
    what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A node with what is modelled of it.
#[derive(Debug)]
struct Machine {
    node: Node,
    running: bool,
    clock: FreeClock,
    stamper: Stamper,
    residence: Stream,
    /// By port: the link, and which of its ends this is.
    ports: Vec<(usize, usize)>,
    /// By port: when the last message leaves.
    busy: Vec<NetTime>,
    /// When it is woken next.
    wakes: Option<NetTime>,
    steered: Option<Line>,
    largest_step: Fine,
    rates_ppb: Option<[i64; 2]>,
}

/// A simulation under way.
#[derive(Debug)]
pub(super) struct World<'a> {
    scenario: &'a Scenario,
    machines: Vec<Machine>,
    /// By link: how many faults keep it down.
    down: Vec<u32>,
    ahead: BinaryHeap<Reverse<Entry>>,
    asked: u64,
    now: NetTime,
    reference: Option<usize>,
    trace: Trace,
}

impl<'a> World<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let mut world = Self {
            scenario,
            machines: Vec::new(),
            down: vec![0; scenario.links.len()],
            ahead: BinaryHeap::new(),
            asked: 0,
            now: NetTime::ZERO,
            reference: None,
            trace: Trace { samples: Vec::new(), nodes: Vec::new(), messages: 0 },
        };
        for index in 0..scenario.nodes.len() {
            world.add_node(index);
        }
        for fault in &scenario.faults {
            match *fault {
                Fault::NodeStops { node, at } => world.ask(at, Happening::Stop(node)),
                Fault::LinkDown { link, from, until } => {
                    world.ask(from, Happening::LinkDown(link));
                    world.ask(until, Happening::LinkUp(link));
                }
            }
        }
        world.ask(NetTime::ZERO, Happening::Sample);
        world
    }

    fn add_node(&mut self, index: usize) {
        let (scenario, model) = (self.scenario, &self.scenario.nodes[index]);
        let mut residence = Stream::new(scenario.seed, Purpose::Synchronisation, index);
        let start = NetTime::from_ns(residence.below(START_WITHIN_NS) as i64);
        let mut clock = FreeClock::new(model.oscillator, scenario.seed, index);
        let identity = identity(index);
        let mut settings = Settings::new(SystemIdentity::unknown(model.priority1, identity));
        settings.delay_threshold = model.delay_threshold;
        settings.servo = model.servo;
        let ends = scenario.links.iter().enumerate().filter_map(|(link, l)| {
            l.ends.iter().position(|end| *end == index).map(|end| (link, end))
        });
        let ports: Vec<_> = ends.collect();
        self.machines.push(Machine {
            node: Node::new(settings, ports.len(), clock.read(start)),
            running: false,
            clock,
            stamper: Stamper::new(model.stamps, scenario.seed, index),
            residence,
            busy: vec![NetTime::ZERO; ports.len()],
            ports,
            wakes: None,
            steered: None,
            largest_step: Fine::ZERO,
            rates_ppb: None,
        });
        self.ask(start, Happening::Start(index));
    }

    fn ask(&mut self, at: NetTime, what: Happening) {
        self.asked += 1;
        self.ahead.push(Reverse(Entry { key: (at, self.asked), what }));
    }

    pub(super) fn run(mut self) -> Trace {
        let end = NetTime::ZERO + self.scenario.duration;
        while let Some(Reverse(entry)) = self.ahead.pop() {
            if entry.key.0 > end {
                break;
            }
            self.now = entry.key.0;
            self.happen(entry.what);
        }
        let summary = |m: &Machine| NodeSummary {
            largest_step: -(-m.largest_step).span(),
            rates_ppb: m.rates_ppb,
            ignored: m.node.ignored(),
        };
        self.trace.nodes = self.machines.iter().map(summary).collect();
        self.trace
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Start(node) => {
                self.machines[node].running = true;
                self.handle(node, Event::Alarm);
            }
            Happening::Wake(node) => {
                self.machines[node].wakes = None;
                self.handle(node, Event::Alarm);
            }
            Happening::Leave { node, port, octets, ticket } => {
                self.leave(node, port, octets, ticket);
            }
            Happening::Arrive { node, port, link, octets } => {
                if self.down[link] == 0 {
                    let machine = &mut self.machines[node];
                    let stamp = machine.stamper.received(&mut machine.clock, self.now);
                    let stamp = Some(stamp);
                    self.handle(node, Event::Received { port, octets: &octets, stamp });
                }
            }
            Happening::Stop(node) => self.machines[node].running = false,
            Happening::LinkDown(link) => self.down[link] += 1,
            Happening::LinkUp(link) => self.down[link] -= 1,
            Happening::Sample => self.sample(),
        }
    }

    fn handle(&mut self, node: usize, event: Event<'_>) {
        let now = self.now;
        let machine = &mut self.machines[node];
        if !machine.running {
            return;
        }
        let reading = machine.clock.read(now);
        for action in machine.node.handle(reading, event) {
            match action {
                Action::Steer(line) => machine.note(line),
                Action::Send { port, octets, ticket } => {
                    let [shortest, longest] = self.scenario.nodes[node].residence;
                    let spread = (longest - shortest).as_ns() as u64 + 1;
                    let stay = shortest + Span::from_ns(machine.residence.below(spread) as i64);
                    let at = (now + stay).max(machine.busy[port] + Span::from_ns(1));
                    machine.busy[port] = at;
                    self.asked += 1;
                    let what = Happening::Leave { node, port, octets, ticket };
                    self.ahead.push(Reverse(Entry { key: (at, self.asked), what }));
                }
            }
        }
        let alarm = machine.clock.when(machine.node.next_alarm()).max(now + Span::from_ns(1));
        if machine.wakes.is_none_or(|at| alarm < at) {
            machine.wakes = Some(alarm);
            self.ask(alarm, Happening::Wake(node));
        }
    }

    fn leave(&mut self, node: usize, port: usize, octets: Vec<u8>, ticket: Option<Ticket>) {
        let machine = &mut self.machines[node];
        if !machine.running {
            return;
        }
        self.trace.messages += 1;
        let (link, end) = machine.ports[port];
        let stamp = machine.stamper.sent(&mut machine.clock, self.now);
        if self.down[link] == 0 {
            let model = &self.scenario.links[link];
            let peer = model.ends[1 - end];
            let peer_port = self.machines[peer].ports.iter().position(|(l, _)| *l == link);
            if let Some(port) = peer_port {
                let at = self.now + model.delay[end];
                self.ask(at, Happening::Arrive { node: peer, port, link, octets });
            }
        }
        if let Some(ticket) = ticket {
            self.handle(node, Event::Sent { port, ticket, stamp });
        }
    }

    fn sample(&mut self) {
        let leads = |m: &Machine| m.running && m.node.condition() == Condition::Grandmaster;
        // While two nodes lead, the better one will stay.
        let numbered = self.machines.iter().enumerate().filter(|(_, m)| leads(m));
        let best = numbered.min_by_key(|(_, m)| m.node.grandmaster()).map(|(index, _)| index);
        self.reference = best.or(self.reference);
        let now = self.now;
        let mut read = |machine: &mut Machine| {
            let at = machine.clock.read(now);
            machine.node.read(at).map(|reading| LocalTime::from_ns(reading.as_ns()))
        };
        let readings: Vec<_> = self.machines.iter_mut().map(&mut read).collect();
        let reference_clock = self.reference.and_then(|node| readings[node]);
        let running = self.machines.iter().map(|m| m.running);
        let clocks = readings.into_iter().zip(running).map(|(r, runs)| r.filter(|_| runs));
        let clocks: Vec<_> = clocks.collect();
        let whose = |m: &Machine| index(m.node.grandmaster().identity);
        let follows = self.machines.iter().zip(&clocks).map(|(m, clock)| clock.map(|_| whose(m)));
        let follows = follows.collect();
        let (at, reference) = (now, self.reference);
        self.trace.samples.push(Sample { at, reference, clocks, follows, reference_clock });
        self.ask(now + self.scenario.sample_every, Happening::Sample);
    }
}

/// The identity of a node's clock.
fn identity(index: usize) -> ClockIdentity {
    ClockIdentity((index as u64 + 1).to_be_bytes())
}

/// Whose it is: there are no more than [`super::NODES_MAX`].
fn index(identity: ClockIdentity) -> u16 {
    u64::from_be_bytes(identity.0).wrapping_sub(1) as u16
}

impl Machine {
    /// Keeps what a new line does to the clock.
    fn note(&mut self, line: Line) {
        if let Some(before) = self.steered {
            let step = (line.reading - before.read(line.from)).abs();
            self.largest_step = self.largest_step.max(step);
        }
        let ppb = line.rate.ppb();
        let [low, high] = self.rates_ppb.unwrap_or([ppb, ppb]);
        self.rates_ppb = Some([low.min(ppb), high.max(ppb)]);
        self.steered = Some(line);
    }
}
