//! All stations of a plan, by the reference interpreter, in exact true time: clocks that drift,
//! bridges that hold frames back, applications that write as often and as early as they may. Where
//! frames go and how long they take is computed here from the description alone.

use onbeat_model::system::{Bridge, NodeKind, PortId, System};
use onbeat_model::units::MacAddress;
use onbeat_network_code::interpreter::{Interpreter, SentContent, SentFrame, StationRecord};
use onbeat_network_code::planning::BusPlan;
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{BufferId, Instruction, MessageId};
use onbeat_runtime::network_code::timing::Cycles;
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry};
use onbeat_testkit::Random;
use std::collections::BTreeMap;

/// A nanosecond in attoseconds: a cycle that drifts by whole ppb is whole.
pub(super) const NS: i128 = 1_000_000_000;

/// How adverse a network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// All nominal.
    Calm,
    /// Anything within the limits.
    Random,
    /// Only the limits.
    Extreme,
}

/// What is given.
#[derive(Clone, Debug)]
pub(super) struct World<'a> {
    pub(super) system: &'a System,
    pub(super) plan: &'a BusPlan,
    /// Of each node.
    pub(super) drift_ppb: Vec<i64>,
    /// When each station's cycle 0 is.
    started: Vec<i128>,
    /// From when on applications write.
    pub(super) from: i128,
    /// After one of so many messages an application waits longer than it must; 0: after none.
    pub(super) one_pause_of: u64,
    pub(super) temper: Temper,
    pub(super) random: Random,
    /// Of so many frames of the master one is lost on its way to a station; 0: none is.
    pub(super) one_lost_of: u64,
}

/// A frame on the bus.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) sender: usize,
    pub(super) content: SentContent,
    /// When the first octet leaves.
    pub(super) begin: i128,
    words: u16,
    /// By port: from when to when it keeps the link, with its gap.
    pub(super) occupied: Vec<(PortId, i128, i128)>,
    /// By station: when its EtherType is there, and when all of it is.
    arrivals: BTreeMap<usize, (i128, i128)>,
}

/// A message on its way: which write, where, how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) slot: usize,
    pub(super) listener: usize,
    pub(super) value: u32,
    pub(super) written: i128,
    pub(super) latency: i128,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) flights: Vec<Flight>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) counters: Vec<StationCounters>,
    /// By slot, the messages that were written.
    pub(super) written: Vec<Vec<Written>>,
    /// Messages for which a queue had no room.
    pub(super) lost: usize,
}

/// A message: when it was written, and its number, from 1.
pub(super) type Written = (i128, u32);

/// The round before which all stations are in step: two until all have begun, and those until the
/// next hyper-round.
pub(super) fn settled(plan: &BusPlan) -> u32 {
    if plan.rounds > 1 { 3 + 2 * plan.rounds } else { 3 }
}

/// Inputs of a station: cycles, and what.
type Inputs = Vec<(u64, Input)>;

#[derive(Clone, Debug)]
enum Input {
    Sync(u32),
    Data(MessageId, Vec<u32>),
    Write(BufferId, Vec<u32>),
}

impl<'a> World<'a> {
    pub(super) fn new(
        system: &'a System,
        plan: &'a BusPlan,
        temper: Temper,
        mut random: Random,
    ) -> Self {
        let limit = i64::from(plan.drift_ppb);
        let drift = |_| match temper {
            Temper::Calm => 0,
            Temper::Random => random.between(-limit, limit),
            Temper::Extreme => random.one_of(&[-limit, limit]),
        };
        let drift_ppb = (0..system.nodes.len()).map(drift).collect();
        let round = i64::try_from(plan.round.0 * 8).expect("it is short");
        // Slaves start before the master, or some rounds later.
        let started = (0..plan.stations.len()).map(|at| match at == plan.master {
            true => 0,
            false => i128::from(random.between(-round, 2 * round)) * NS,
        });
        let started = started.collect();
        let from = i128::from(round) * NS * i128::from(settled(plan));
        Self {
            system,
            plan,
            drift_ppb,
            started,
            from,
            one_pause_of: 5,
            temper,
            random,
            one_lost_of: 0,
        }
    }

    fn cycle(&self, station: usize) -> i128 {
        let node = self.plan.stations[station].node;
        8 * (NS + i128::from(self.drift_ppb[node.index()]))
    }

    /// True time of a cycle of a station.
    fn at(&self, station: usize, cycle: Cycles) -> i128 {
        self.started[station] + i128::from(cycle.0) * self.cycle(station)
    }

    /// The first cycle of a station that is not before an instant; none before its start.
    fn cycle_at(&self, station: usize, at: i128) -> Option<u64> {
        let since = at - self.started[station];
        let cycle = self.cycle(station);
        (since >= 0).then(|| u64::try_from((since + cycle - 1) / cycle).expect("a short time"))
    }

    /// Octets as a node sends them.
    fn octets(&self, node: usize, octets: i128) -> i128 {
        let octet_ns = i128::from(8 * self.plan.medium.octet_cycles);
        octets * octet_ns * (NS + i128::from(self.drift_ppb[node]))
    }

    /// Between nothing and so much.
    fn up_to(&mut self, most: i128) -> i128 {
        match self.temper {
            Temper::Calm => 0,
            Temper::Random => most * i128::from(self.random.below(1_001)) / 1_000,
            Temper::Extreme => most * i128::from(self.random.below(2)),
        }
    }

    /// By how much a station is late.
    fn late(&mut self) -> i128 {
        match self.plan.slot_error.as_ns() {
            0 => 0,
            most => self.up_to(i128::from(most) * NS),
        }
    }

    /// The longest frame of best effort at a port, in octets on the wire.
    fn best_effort(&self, port: PortId) -> i128 {
        let link = self.plan.links.iter().find(|link| link.port == port).expect("it is there");
        match link.best_effort.get() {
            0 => 0,
            octets => i128::from(octets) + 20,
        }
    }

    /// Where a frame goes.
    fn fly(&mut self, sender: usize, begin: i128, content: SentContent) -> Flight {
        let words = match &content {
            SentContent::Data { words, .. } => words.len() as u16,
            SentContent::Sync { .. } => 1,
        };
        let node = self.plan.stations[sender].node;
        // Preamble, addresses, tag, EtherType, header, words, check sequence; at least 68 octets.
        let octets = 8 + i128::from(14 + 4 + 4 + 4 * u32::from(words) + 4).max(68);
        let mut flight = Flight {
            sender,
            content,
            begin,
            words,
            occupied: Vec::new(),
            arrivals: BTreeMap::new(),
        };
        let begin = begin + self.late();
        let mut ready = vec![(self.system.node(node).ports[0], begin)];
        while let Some((port, at)) = ready.pop() {
            let from = self.system.port(port).node.index();
            let blocks = self.system.node(self.system.port(port).node).best_effort_blocks();
            let wait = if blocks { self.best_effort(port) } else { 0 };
            let wait = self.octets(from, wait);
            let start = at + self.up_to(wait);
            let end = start + self.octets(from, octets);
            flight.occupied.push((port, start, end + self.octets(from, 12)));
            let link = self.system.link_of(port);
            let propagation = i128::from(link.propagation.as_ns()) * NS;
            let peer = self.system.port(port).peer;
            let node = self.system.port(peer).node;
            match &self.system.node(node).kind {
                NodeKind::Host(_) => {
                    let it = self.plan.stations.iter().position(|station| station.node == node);
                    let ethertype = start + self.octets(from, 26) + propagation;
                    flight.arrivals.extend(it.map(|it| (it, (ethertype, end + propagation))));
                }
                NodeKind::Bridge(Bridge { dedicated_path: Some(path), .. }) => {
                    // 46 octets by the bridge's clock, and one for the crossing of clocks.
                    let cycles = NS + i128::from(self.drift_ppb[node.index()]);
                    let wait = i128::from(path.wait.as_ns()) * cycles;
                    let passes = self.octets(node.index(), 46) + wait;
                    let crosses = self.up_to(self.octets(node.index(), 1));
                    let at = start + propagation + passes + crosses;
                    let others = &self.system.node(node).ports;
                    ready.extend(others.iter().filter(|it| **it != peer).map(|it| (*it, at)));
                }
                NodeKind::Bridge(bridge) => {
                    let is_cut = bridge.cut_through && self.up_to(1) == 1;
                    let there = if is_cut { start + self.octets(from, 26) } else { end };
                    let forwarding = i128::from(bridge.forwarding.as_ns()) * NS;
                    let at = there + propagation + forwarding;
                    let others = &self.system.node(node).ports;
                    ready.extend(others.iter().filter(|it| **it != peer).map(|it| (*it, at)));
                }
            }
        }
        flight
    }

    /// What frames are to a station.
    fn inputs(&self, station: usize, flights: &[Flight]) -> Inputs {
        let mut inputs = Vec::new();
        for (number, flight) in flights.iter().enumerate() {
            let Some((ethertype, end)) = flight.arrivals.get(&station) else { continue };
            // The same frame both times that a station is carried out.
            let mut of_frame = Random((number * 1_000 + station) as u64);
            let may_be_lost = self.one_lost_of > 0 && flight.sender == self.plan.master;
            if may_be_lost && of_frame.one_in(self.one_lost_of) {
                continue;
            }
            match &flight.content {
                SentContent::Sync { round } => {
                    let at = self.cycle_at(station, *ethertype);
                    inputs.extend(at.map(|at| (at, Input::Sync(*round))));
                }
                SentContent::Data { message, words } => {
                    let known = self.plan.stations[station].program.message(*message);
                    let at = self.cycle_at(station, *end).filter(|_| known.is_some());
                    let data = Input::Data(*message, words.clone());
                    inputs.extend(at.map(|at| (at + 8, data)));
                }
            }
        }
        inputs
    }

    fn interpret(&self, station: usize, mut inputs: Inputs, until: i128) -> Interpreted {
        let until = self.cycle_at(station, until).unwrap_or(0);
        inputs.retain(|(at, _)| *at < until);
        inputs.sort_by_key(|(at, _)| *at);
        let mut interpreter = Interpreter::new(self.plan.stations[station].program.clone());
        let mut record = StationRecord::default();
        for (at, input) in &inputs {
            interpreter.run(Cycles(*at), &mut record);
            match input {
                Input::Sync(round) => {
                    interpreter.sync_received(*round, MacAddress([2, 0, 0, 0, 0, 1]));
                }
                Input::Data(message, words) => interpreter.data_received(*message, words),
                Input::Write(buffer, words) => {
                    interpreter.write(*buffer, words).expect("it is an output");
                }
            }
        }
        interpreter.run(Cycles(until), &mut record);
        Interpreted { record, counters: *interpreter.counters(), inputs }
    }

    /// Frames of a station.
    fn flights(&mut self, station: usize, sent: &[SentFrame]) -> Vec<Flight> {
        let mut flights = Vec::new();
        for frame in sent {
            let begin = self.at(station, frame.at);
            flights.push(self.fly(station, begin, frame.content.clone()));
        }
        flights
    }

    /// Messages of all applications, by slot. Each keeps the generic cell rate algorithm (ITU-T
    /// I.371) by its talker's clock, in its continuous form: the next message is due an interval
    /// behind the last one, or behind when that was due, and comes by a tolerance earlier.
    fn messages(&mut self, until: i128) -> Vec<Vec<Written>> {
        let mut all = Vec::new();
        for it in &self.plan.slots {
            let channel = self.system.channel(it.channel);
            let node = self.plan.stations[it.sender].node;
            let nanosecond = NS + i128::from(self.drift_ppb[node.index()]);
            let interval = i128::from(channel.interval.as_ns()) * nanosecond;
            let tolerance = i128::from(channel.tolerance().as_ns()) * nanosecond;
            let per_mille = |random: &mut Random| i128::from(random.below(1_000));
            let mut due = self.from + interval * per_mille(&mut self.random) / 1_000;
            let mut at = due;
            let mut own = Vec::new();
            while at < until {
                own.push((at, own.len() as u32 + 1));
                due = due.max(at) + interval;
                at = match self.one_pause_of > 0 && self.random.one_in(self.one_pause_of) {
                    true => due + interval * per_mille(&mut self.random) / 1_000,
                    false => due - tolerance,
                };
            }
            all.push(own);
        }
        all
    }

    /// What a host writes into output buffers when: a message at once, or behind the `create` of
    /// the one before it. One may wait so; further ones are lost.
    fn carried(
        &self,
        station: usize,
        created: &[(u64, BufferId)],
        written: &[Vec<Written>],
    ) -> (Inputs, usize) {
        let (mut inputs, mut lost) = (Inputs::new(), 0);
        for (slot, written) in self.plan.slots.iter().zip(written) {
            let own = &self.plan.stations[station].buffers;
            let buffer = own.iter().find(|(id, _)| *id == slot.channel && slot.sender == station);
            let Some((_, buffer)) = buffer else { continue };
            let words = usize::from(slot.words);
            let mut put = |at, value| inputs.push((at, Input::Write(*buffer, vec![value; words])));
            // What is written in the cycle of `create` is before it.
            let creates = created.iter().filter(|(_, of)| of == buffer);
            let creates = creates.map(|(at, _)| (*at, 1, 0));
            let writes = written
                .iter()
                .filter_map(|(at, value)| Some((self.cycle_at(station, *at)?, 0, *value)));
            let mut events: Vec<_> = creates.chain(writes).collect();
            events.sort_unstable();
            let (mut is_in_buffer, mut queued) = (false, None);
            for (at, is_create, value) in events {
                match (is_create, is_in_buffer) {
                    (1, _) => {
                        is_in_buffer = queued.is_some();
                        queued.take().into_iter().for_each(|value| put(at + 1, value));
                    }
                    (_, false) => {
                        is_in_buffer = true;
                        put(at, value);
                    }
                    _ if queued.is_none() => queued = Some(value),
                    _ => lost += 1,
                }
            }
        }
        (inputs, lost)
    }
}

struct Interpreted {
    record: StationRecord,
    counters: StationCounters,
    inputs: Inputs,
}

/// When a station took which buffers.
fn created(world: &World<'_>, station: usize, interpreted: &Interpreted) -> Vec<(u64, BufferId)> {
    let program = &world.plan.stations[station].program;
    let create = |entry: &TraceEntry| {
        let word = program.word(entry.address).expect("an instruction");
        match Instruction::decode(word) {
            Ok(Instruction::Create { buffer }) => Some((entry.issued.0, buffer)),
            _ => None,
        }
    };
    interpreted.record.trace.iter().filter_map(create).collect()
}

/// Carries all stations out for some rounds.
pub(super) fn simulate(world: &mut World<'_>, rounds: u64) -> Simulated {
    let plan = world.plan;
    let until = i128::from(plan.round.0 * 8 * rounds) * NS;
    let written = world.messages(until);
    let mut lost = 0;
    // No station decides by what its application writes, so it creates in the same cycles.
    let mut own = |world: &World<'_>, station: usize, inputs: Inputs| -> Inputs {
        let created = created(world, station, &world.interpret(station, inputs, until));
        let (inputs, more) = world.carried(station, &created, &written);
        lost += more;
        inputs
    };
    // No slave decides by what another one sends, so the master's frames say when they send.
    let of_master = own(world, plan.master, Inputs::new());
    let record = world.interpret(plan.master, of_master.clone(), until).record;
    let mut writes = BTreeMap::from([(plan.master, of_master)]);
    let of_master = world.flights(plan.master, &record.sent);
    let mut flights = of_master.clone();
    let mut records = BTreeMap::new();
    for station in (0..plan.stations.len()).filter(|it| *it != plan.master) {
        let mut inputs = world.inputs(station, &of_master);
        let writes_of = own(world, station, inputs.clone());
        inputs.extend(writes_of.iter().cloned());
        writes.insert(station, writes_of);
        let record = world.interpret(station, inputs, until).record;
        let own = world.flights(station, &record.sent);
        flights.extend(own);
        records.insert(station, record.sent);
    }
    let (deliveries, counters) = (Vec::new(), Vec::new());
    let mut simulated = Simulated { flights, deliveries, counters, written, lost };
    for station in 0..plan.stations.len() {
        let mut inputs = writes.remove(&station).unwrap_or_default();
        inputs.extend(world.inputs(station, &simulated.flights));
        let interpreted = world.interpret(station, inputs, until);
        if let Some(sent) = records.get(&station) {
            assert_eq!(*sent, interpreted.record.sent, "what others send changes nothing");
        }
        simulated.counters.push(interpreted.counters);
        received(world, station, &interpreted, &mut simulated);
    }
    simulated
}

/// What a station received first of each write, and how long after it.
fn received(
    world: &mut World<'_>,
    station: usize,
    interpreted: &Interpreted,
    simulated: &mut Simulated,
) {
    let plan = world.plan;
    let program = &plan.stations[station].program;
    let mut last = BTreeMap::new();
    for entry in &interpreted.record.trace {
        let word = program.word(entry.address).expect("an instruction");
        let Ok(Instruction::Receive { message, .. }) = Instruction::decode(word) else { continue };
        let Some(slot) = plan.slots.iter().position(|slot| slot.message == message) else {
            continue;
        };
        if entry.outcome != Outcome::Received(true) {
            continue;
        }
        let is_of = |(at, input): &&(u64, Input)| {
            let is_it = matches!(input, Input::Data(of, _) if *of == message);
            is_it && *at <= entry.issued.0
        };
        let newest = interpreted.inputs.iter().rev().find(is_of).map(|(_, input)| input);
        let Some(Input::Data(_, words)) = newest else { panic!("a frame was received") };
        let value = words[0];
        assert!(words.iter().all(|word| *word == value), "all of one write");
        let before = last.insert(slot, value).unwrap_or(0);
        assert!(before <= value, "in the order of writes");
        // The same message again, or none yet.
        if value == before {
            continue;
        }
        let (written, _) = simulated.written[slot][value as usize - 1];
        let latency = world.at(station, entry.next) + world.late() - written;
        let delivery = Delivery { slot, listener: station, value, written, latency };
        simulated.deliveries.push(delivery);
    }
}

/// Two frames that are at one link at once, if there are any.
pub(super) fn collision(flights: &[Flight]) -> Option<String> {
    let mut at_ports: BTreeMap<PortId, Vec<(i128, i128, usize)>> = BTreeMap::new();
    for (number, flight) in flights.iter().enumerate() {
        for (port, start, end) in &flight.occupied {
            at_ports.entry(*port).or_default().push((*start, *end, number));
        }
    }
    at_ports.into_iter().find_map(|(port, mut all)| {
        all.sort_unstable();
        let meets = all.windows(2).find(|pair| pair[0].1 > pair[1].0)?;
        let shown = meets.iter().map(|(start, end, number)| {
            let Flight { sender, words, begin, .. } = flights[*number];
            format!(
                "station {sender}, {words} words, sent at {} ns, there from {} to {} ns",
                begin / NS,
                start / NS,
                end / NS
            )
        });
        Some(format!("{port:?}: {}", shown.collect::<Vec<_>>().join("; ")))
    })
}
