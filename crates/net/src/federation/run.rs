//! One run: what each event does.

use super::chain::{Chains, Instance};
use super::outgoing::{HELD_MAX, Message, Outgoing};
use super::processors::Processors;
use super::{Clocks, Event, FederationObserved, Receipt, Settings, Skeleton, Watch};
use crate::engine::{Engine, Options, Output, Overfull};
use crate::participant::join_protocols;
use crate::random::{Purpose, RandomDelay, Stream};
use onbeat_model::federation::{
    ConnectionId, FederateId, Federation, MaxWait, ReactionId, Tag, Trigger,
};
use onbeat_model::system::{ChannelId, Delay, NodeId, NodeKind, System};
use onbeat_model::time::{ClockError, NetTime, Span, SyncedTime};
use onbeat_runtime::federate::{Action, Federate, Happened, Settings as FederateSettings};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How far a run goes at most until who looks on is told.
const SLICE: Span = Span::from_ms(100);
/// So far from the start readings of clocks can still be converted.
const FAR: Span = Span::from_ns(i64::MAX / 8);
/// Ranks of work are below.
const RANKS: u64 = 1 << 20;

/// What is to be done at some time.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// A federate's clock reads what it waits for; its wake-up follows.
    Reads(usize),
    /// It continues. What comes at this instant comes first: then it is *now*.
    Wake(usize),
    WakeNow(usize),
    /// The work of a federate is done.
    Done(usize),
    DoneNow(usize),
    /// Something may be done on the shared processors of a node.
    Station(usize, u64),
    /// The declared rate of a connection's channel allows the next message.
    Allowed(usize),
    /// The reader's clock reads when the first message of a connection is to be read.
    Read(usize),
    /// It has it.
    Deliver(usize),
    /// An action of a federate happens.
    Event(usize, usize),
}

/// What the engine is asked to wake this for.
#[derive(Debug, Default)]
struct Dues {
    list: Vec<Due>,
    free: Vec<usize>,
}

impl Dues {
    fn add(&mut self, due: Due) -> u64 {
        let Some(at) = self.free.pop() else {
            self.list.push(due);
            return self.list.len() as u64 - 1;
        };
        self.list[at] = due;
        at as u64
    }

    fn take(&mut self, token: u64) -> Due {
        self.free.push(token as usize);
        self.list[token as usize]
    }
}

/// A federate in a run.
struct Member {
    machine: Federate,
    host: Option<NodeId>,
    /// What its clock read last: it never goes backwards here.
    reading: Span,
    /// What the engine wakes it for, when its clock reads this.
    alarm: Option<Span>,
    tag: Tag,
    /// What executes: since which tag, and the chains that led there.
    executing: Option<(usize, Tag, bool)>,
    because: Vec<Instance>,
    /// Chains that reach causes of reactions to come.
    coming: BTreeMap<(usize, usize, Tag), BTreeSet<Instance>>,
    /// Chains that reach what is set on connections and not sent.
    set: BTreeMap<usize, BTreeSet<Instance>>,
    /// Per action: the least interval.
    intervals: Vec<Span>,
    has_ended: bool,
    random: Stream,
    events: Stream,
    wakeup: RandomDelay,
    wakeup_max: Span,
    rank: u64,
}

/// The receiving end of a connection.
struct Incoming {
    /// Those that its clock does not let it read yet, in order.
    unread: VecDeque<Message>,
    /// Those that the reader will have, in order.
    messages: VecDeque<Message>,
    /// When it has the last of them.
    last: NetTime,
    random: Stream,
}

impl Incoming {
    fn is_idle(&self) -> bool {
        self.unread.is_empty() && self.messages.is_empty()
    }
}

struct Run<'a> {
    subject: Skeleton<'a>,
    settings: &'a Settings,
    engine: Engine,
    members: Vec<Member>,
    outgoing: Vec<Option<Outgoing>>,
    incoming: Vec<Incoming>,
    /// Per channel: its connection.
    carried: Vec<Option<usize>>,
    /// Per reaction: the connections that it sets.
    outputs: Vec<Vec<usize>>,
    /// Per node, where federates share processors.
    processors: Vec<Option<Processors>>,
    due: Dues,
    chains: Chains,
    seen: FederationObserved,
    /// In network time, and by clocks.
    start: Span,
    end: NetTime,
    running: usize,
    watch: &'a mut dyn Watch,
}

/// Executes a federation once. What happens depends on the seed and on the number of the run alone.
///
/// # Errors
/// When more frames wait in the network than an engine keeps.
///
/// # Panics
/// When the subject's parts are not of each other, or as [`Engine::new`].
pub fn run(
    subject: Skeleton<'_>,
    settings: &Settings,
    number: u32,
    watch: &mut dyn Watch,
) -> Result<FederationObserved, Overfull> {
    assert_eq!(subject.transfers.len(), subject.federation.connections.len());
    let mut random = Stream::new(settings.seed, Purpose::Federation, number as usize);
    let seed = random.below(u64::MAX);
    let spread = random.below(settings.start_spread.as_ns().max(0) as u64 + 1);
    let start = settings.start + Span::from_ns(spread as i64);
    let system = with_clocks(subject.system, settings.clocks, seed);
    let subject = Skeleton { system: &system, ..subject };
    let mut run = Run::new(subject, settings, seed, start, watch);
    run.begin();
    run.go_on()?;
    Ok(run.finish())
}

/// The system with clocks that err as they are to. Those that a protocol steers stay.
fn with_clocks(system: &System, clocks: Clocks, seed: u64) -> System {
    let mut system = system.clone();
    let is_steered = system.synchronisation.as_ref().is_some_and(|one| one.in_run);
    for (at, node) in system.nodes.iter_mut().enumerate().filter(|_| !is_steered) {
        let mut random = Stream::new(seed, Purpose::FederationClock, at);
        let offset = match clocks {
            Clocks::Described => continue,
            Clocks::Greatest(until) => {
                let most = node.clock.max_abs(until);
                if random.below(2) == 0 { most } else { Span::ZERO - most }
            }
            Clocks::Drawn(until) => {
                let most = node.clock.max_abs(until);
                Span::from_ns(random.below(2 * most.as_ns() as u64 + 1) as i64) - most
            }
        };
        node.clock = ClockError { offset, ..ClockError::default() };
    }
    system
}

/// The host of a federate.
fn host(federation: &Federation, system: &System, federate: usize) -> Option<NodeId> {
    let name = federation.federates[federate].station.as_ref()?;
    let mut nodes = (0..).map(NodeId).zip(&system.nodes);
    let is_it = |(_, node): &(NodeId, &onbeat_model::system::Node)| {
        matches!(node.kind, NodeKind::Host(_)) && node.name == *name
    };
    nodes.find(is_it).map(|(id, _)| id)
}

impl<'a> Run<'a> {
    fn new(
        subject: Skeleton<'a>,
        settings: &'a Settings,
        seed: u64,
        start: Span,
        watch: &'a mut dyn Watch,
    ) -> Self {
        let Skeleton { federation, system, plan, transfers } = subject;
        let epoch = NetTime::ZERO + start;
        let traffic_until = epoch + settings.duration;
        let options = Options {
            seed,
            host_delays: true,
            load_bin: settings.duration,
            noise_until: if system.run.noise { traffic_until } else { NetTime::ZERO },
            traffic_until,
            model_channels: false,
        };
        let mut engine = Engine::new(system, plan, options);
        join_protocols(&mut engine, system, plan, seed, traffic_until);
        let federates = federation.federates.len();
        let hosts: Vec<_> = (0..federates).map(|at| host(federation, system, at)).collect();
        let connections = 0..federation.connections.len();
        let mut carried = vec![None; system.channels.len()];
        let outgoing = connections.clone().map(|at| {
            let id = transfers[at].channel?;
            carried[id.index()] = Some(at);
            let connection = &federation.connections[at];
            let before = federation.connections[..at].iter();
            let port = before.filter(|one| one.to == connection.to).count();
            Some(Outgoing::new(&subject, id, connection, port))
        });
        let outgoing = outgoing.collect();
        let incoming = connections.clone().map(|at| Incoming {
            unread: VecDeque::new(),
            messages: VecDeque::new(),
            last: NetTime::ZERO,
            random: Stream::new(seed, Purpose::FederateMessage, at),
        });
        let mut outputs = vec![Vec::new(); federation.reactions.len()];
        for (at, connection) in federation.connections.iter().enumerate() {
            let writers: BTreeSet<_> = connection.writers.iter().collect();
            writers.into_iter().for_each(|writer| outputs[writer.index()].push(at));
        }
        let member = |at: usize| Member::new(&subject, settings, seed, at, hosts[at]);
        let seen = FederationObserved::new(federates, outputs.len(), connections.len());
        Self {
            members: (0..federates).map(member).collect(),
            processors: processors(system, &hosts),
            engine,
            outgoing,
            incoming: incoming.collect(),
            carried,
            outputs,
            due: Dues::default(),
            chains: Chains::default(),
            seen: FederationObserved { runs: 1, ..seen },
            start,
            end: traffic_until + settings.limits.drain,
            running: federates,
            subject,
            settings,
            watch,
        }
    }

    fn begin(&mut self) {
        for at in 0..self.members.len() {
            self.after(Span::ZERO, Due::Wake(at));
            for action in 0..self.members[at].intervals.len() {
                let member = &mut self.members[at];
                let first = draw(&mut member.events, Span::ZERO, member.intervals[action]);
                self.at_reading(at, first, Due::Event(at, action));
            }
        }
    }

    fn go_on(&mut self) -> Result<(), Overfull> {
        let (mut at_once, mut told) = (0, NetTime::ZERO);
        while !self.is_over() {
            let before = self.engine.now();
            let limit = (before + SLICE).min(self.end);
            match self.engine.advance(limit) {
                None if limit == self.end => break,
                None => {}
                Some(Output::Overfull(overfull)) => return Err(overfull),
                Some(Output::Delivered { channel, .. }) => self.arrive(channel),
                Some(Output::Woke { token }) => {
                    let due = self.due.take(token);
                    self.happen(due);
                }
            }
            let now = self.engine.now();
            at_once = if now > before { 0 } else { at_once + 1 };
            self.seen.events += 1;
            if now - told >= SLICE {
                told = now;
                if !self.watch.progress(now) {
                    self.seen.is_interrupted = true;
                    break;
                }
            }
            let limits = self.settings.limits;
            if self.seen.events >= limits.events || at_once >= limits.at_once {
                self.seen.cut = 1;
            }
            if self.seen.cut > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Whether nothing happens any more that anybody counts.
    fn is_over(&self) -> bool {
        self.running == 0
            && self.engine.frames_under_way() == 0
            && self.outgoing.iter().flatten().all(Outgoing::is_idle)
            && self.incoming.iter().all(Incoming::is_idle)
    }

    fn after(&mut self, span: Span, due: Due) {
        let at = self.engine.now() + span;
        let token = self.due.add(due);
        self.engine.alarm(at, token);
    }

    /// When a federate's clock reads this since the start.
    fn at_reading(&mut self, federate: usize, reading: Span, due: Due) {
        if reading > FAR {
            return;
        }
        let token = self.due.add(due);
        let reading = self.start + reading;
        match self.members[federate].host {
            Some(host) => self.engine.alarm_when(host, SyncedTime::ZERO + reading, token),
            None => self.engine.alarm(NetTime::ZERO + reading, token),
        }
    }

    /// What a federate's clock reads.
    fn clock(&self, federate: usize) -> SyncedTime {
        let now = self.engine.now();
        match self.members[federate].host {
            Some(host) => self.engine.read_clock(host, now),
            None => SyncedTime::ZERO + (now - NetTime::ZERO),
        }
    }

    /// The same since the start; it never becomes less.
    fn reading(&mut self, federate: usize) -> Span {
        let reading = self.clock(federate) - (SyncedTime::ZERO + self.start);
        let member = &mut self.members[federate];
        member.reading = member.reading.max(reading);
        member.reading
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Reads(federate) => {
                self.members[federate].alarm = None;
                let late = self.members[federate].wakeup(self.settings.behaviour.is_worst);
                self.after(late, Due::Wake(federate));
            }
            Due::Wake(federate) => self.after(Span::ZERO, Due::WakeNow(federate)),
            Due::Done(federate) => self.after(Span::ZERO, Due::DoneNow(federate)),
            Due::WakeNow(federate) => self.tell(federate, Happened::Time, &[]),
            Due::DoneNow(federate) => self.executed(federate),
            Due::Station(node, version) => self.dispatch(node, version),
            Due::Allowed(connection) => self.release(connection),
            Due::Read(connection) => self.read(connection),
            Due::Deliver(connection) => self.deliver(connection),
            Due::Event(federate, action) => self.event(federate, action),
        }
    }

    fn event(&mut self, federate: usize, action: usize) {
        let now = self.reading(federate);
        let is_dense = self.settings.behaviour.is_dense;
        let member = &mut self.members[federate];
        let least = member.intervals[action];
        let more = if is_dense { Span::ZERO } else { least };
        let next = now + least + draw(&mut member.events, Span::ZERO, more);
        if next <= self.settings.duration {
            self.at_reading(federate, next, Due::Event(federate, action));
        }
        self.tell(federate, Happened::Event { action }, &[]);
    }

    /// Tells a federate what has happened because of these chains, and does what it asks for.
    fn tell(&mut self, federate: usize, happened: Happened, because: &[Instance]) {
        let now = self.reading(federate);
        let mut actions = Vec::new();
        self.members[federate].machine.handle(now, happened, &mut actions);
        for action in actions {
            self.act(federate, action, because);
        }
    }

    fn act(&mut self, federate: usize, action: Action, because: &[Instance]) {
        match action {
            Action::WakeAt(reading) => {
                if self.members[federate].alarm != Some(reading) {
                    self.members[federate].alarm = Some(reading);
                    self.at_reading(federate, reading, Due::Reads(federate));
                }
            }
            Action::Begin(tag) => {
                self.members[federate].tag = tag;
                self.note(Event::Began { federate: FederateId(federate as u32), tag });
            }
            Action::Execute { reaction, tag, handler } => {
                self.execute(federate, reaction, tag, handler);
            }
            Action::Because { cause } => self.because(federate, cause),
            Action::Scheduled { reaction, cause, tag } => {
                let key = (reaction.index(), cause, tag);
                self.members[federate].coming.entry(key).or_default().extend(because);
            }
            Action::Send { connection, tag } => self.send(federate, connection, tag),
            Action::End => {
                self.members[federate].has_ended = true;
                self.running -= 1;
            }
        }
    }

    fn note(&mut self, event: Event) {
        let now = self.engine.now();
        self.watch.event(now, event);
    }

    fn since_tag(&self, tag: Tag) -> Span {
        self.since(tag.time)
    }

    /// Since a time of tags, which may be anybody's.
    fn since(&self, time: Span) -> Span {
        let now = self.engine.now() - (NetTime::ZERO + self.start);
        Span::from_ns(now.as_ns().saturating_sub(time.as_ns()))
    }

    fn execute(&mut self, federate: usize, reaction: ReactionId, tag: Tag, handler: bool) {
        self.note(Event::Executes { reaction, tag, handler });
        let since = self.since_tag(tag);
        let seen = &mut self.seen.reactions[reaction.index()];
        seen.release.add(since);
        seen.misses += u64::from(handler);
        let behaviour = self.settings.behaviour;
        let execution = self.subject.federation.reactions[reaction.index()].execution;
        let least = execution.map_or(Span::ZERO, |interval| interval.lo);
        let most = execution.and_then(|interval| interval.hi);
        let most = most.unwrap_or(behaviour.unknown_execution.max(least));
        // How short a handler may be is not known.
        let least = if handler { Span::ZERO } else { least.min(most) };
        let least = if behaviour.is_worst { most } else { least };
        let member = &mut self.members[federate];
        member.executing = Some((reaction.index(), tag, handler));
        member.because.clear();
        let amount = draw(&mut member.random, least, most);
        // Priorities of federates, or of the moment.
        let rank = if behaviour.is_worst { member.rank } else { member.random.below(RANKS) };
        let now = self.engine.now();
        let node = member.host.map(NodeId::index);
        match node.and_then(|node| Some((node, self.processors[node].as_mut()?))) {
            None => self.after(amount, Due::Done(federate)),
            Some((node, shared)) => {
                shared.start(now, federate, rank, amount);
                self.arrange(node);
            }
        }
    }

    /// Lets the engine wake a node's processors when something may be done there.
    fn arrange(&mut self, node: usize) {
        let Some(shared) = &mut self.processors[node] else { return };
        shared.version += 1;
        let version = shared.version;
        if let Some(next) = shared.next() {
            self.after(next, Due::Station(node, version));
        }
    }

    fn dispatch(&mut self, node: usize, version: u64) {
        let now = self.engine.now();
        let Some(shared) = &mut self.processors[node] else { return };
        if shared.version != version {
            return;
        }
        let done = shared.take_done(now);
        self.arrange(node);
        for federate in done {
            self.after(Span::ZERO, Due::DoneNow(federate));
        }
    }

    /// A cause of what executes: the chains that came to it.
    fn because(&mut self, federate: usize, cause: usize) {
        let member = &mut self.members[federate];
        let Some((reaction, tag, _)) = member.executing else { return };
        let step = (ReactionId(reaction as u32), cause);
        let causes = &self.subject.federation.reactions[reaction].causes;
        if !matches!(causes[cause], Trigger::Reaction { .. } | Trigger::Message(_)) {
            let part = self.chains.step(None, step);
            member.because.extend(part.map(|part| (part, tag.time)));
            return;
        }
        let came = member.coming.remove(&(reaction, cause, tag));
        for (part, source) in came.unwrap_or_default() {
            let part = self.chains.step(Some(part), step);
            member.because.extend(part.map(|part| (part, source)));
        }
    }

    fn executed(&mut self, federate: usize) {
        let member = &mut self.members[federate];
        let Some((reaction, tag, handler)) = member.executing.take() else { return };
        let because = std::mem::take(&mut member.because);
        let sets = member.random.below(100) < u64::from(self.settings.behaviour.sets_percent);
        if sets && (!handler || self.settings.handlers_set) {
            for connection in &self.outputs[reaction] {
                member.set.entry(*connection).or_default().extend(&because);
            }
        }
        let since = self.since_tag(tag);
        self.seen.reactions[reaction].finish.add(since);
        for (part, source) in &because {
            let took = self.since(*source);
            self.chains.done(*part, took);
        }
        self.note(Event::Executed { reaction: ReactionId(reaction as u32), tag });
        self.tell(federate, Happened::Finished { sets }, &because);
    }

    fn send(&mut self, federate: usize, connection: ConnectionId, tag: Tag) {
        let at = self.members[federate].tag;
        self.note(Event::Sent { connection, at, tag });
        let since = self.since_tag(at);
        let connection = connection.index();
        self.seen.connections[connection].sent.add(since);
        let because = self.members[federate].set.remove(&connection).unwrap_or_default();
        let sent = self.engine.now();
        let message = Message {
            tag,
            sent,
            captured: (sent, self.clock(federate)),
            lateness: Span::ZERO,
            is_held: false,
            because: because.into_iter().collect(),
        };
        let Some(outgoing) = &mut self.outgoing[connection] else {
            return self.receive(connection, message);
        };
        // More than the channel's rate ever allows: the run would only become longer.
        if outgoing.held.len() >= HELD_MAX {
            self.seen.cut = 1;
            return;
        }
        outgoing.held.push_back(message);
        if !outgoing.is_waiting {
            self.release(connection);
        }
    }

    /// Gives the network what a channel's declared rate allows now.
    fn release(&mut self, connection: usize) {
        let from = self.subject.federation.connections[connection].from.index();
        let now = self.clock(from);
        let Some(outgoing) = &mut self.outgoing[connection] else { return };
        let until = outgoing.send(&mut self.engine, now);
        outgoing.is_waiting = until.is_some();
        if let Some(until) = until {
            let reading = until - (SyncedTime::ZERO + self.start);
            self.at_reading(from, reading, Due::Allowed(connection));
        }
    }

    /// A frame is at its reader's host.
    fn arrive(&mut self, channel: ChannelId) {
        let Some(connection) = self.carried[channel.index()] else { return };
        let reader = self.subject.federation.connections[connection].to.index();
        let now = self.engine.now();
        let clock = self.clock(reader);
        let Some(outgoing) = &mut self.outgoing[connection] else { return };
        let Some((mut message, lost)) = outgoing.arrive(self.engine.delivered_frame()) else {
            return;
        };
        message.lateness = clock - (message.captured.1 + outgoing.fixed_delay);
        let seen = &mut self.seen.connections[connection];
        seen.lost += lost;
        seen.held += u64::from(message.is_held);
        seen.latency.add(now - message.captured.0);
        self.receive(connection, message);
    }

    /// A message is at its reader's host, which has it as its receipt says.
    fn receive(&mut self, connection: usize, message: Message) {
        let now = self.engine.now();
        match self.subject.transfers[connection].receipt {
            Receipt::AtOnce => self.hand_over(connection, message, now),
            Receipt::Within { min, max } => {
                let least = if self.settings.behaviour.is_slow { max } else { min };
                let after = draw(&mut self.incoming[connection].random, least, max);
                self.hand_over(connection, message.clone(), message.sent + after);
            }
            Receipt::Fixed(delay) => {
                let reader = self.subject.federation.connections[connection].to.index();
                let due = message.captured.1 + delay;
                if self.incoming[connection].unread.is_empty() && self.clock(reader) >= due {
                    return self.hand_over(connection, message, now);
                }
                self.incoming[connection].unread.push_back(message);
                let reading = due - (SyncedTime::ZERO + self.start);
                self.at_reading(reader, reading, Due::Read(connection));
            }
        }
    }

    /// The reader's clock reads when the next message is due; its wake-up follows.
    fn read(&mut self, connection: usize) {
        let reader = self.subject.federation.connections[connection].to.index();
        let Some(message) = self.incoming[connection].unread.pop_front() else { return };
        let late = self.members[reader].wakeup(self.settings.behaviour.is_worst);
        let at = self.engine.now() + late;
        self.hand_over(connection, message, at);
    }

    /// The reader has a message then, but not before now, nor before the one before it.
    fn hand_over(&mut self, connection: usize, message: Message, at: NetTime) {
        let now = self.engine.now();
        let incoming = &mut self.incoming[connection];
        incoming.last = at.max(now).max(incoming.last);
        incoming.messages.push_back(message);
        let after = incoming.last - now;
        self.after(after, Due::Deliver(connection));
    }

    fn deliver(&mut self, connection: usize) {
        let Some(message) = self.incoming[connection].messages.pop_front() else { return };
        let Message { tag, lateness, because, .. } = message;
        let reader = self.subject.federation.connections[connection].to.index();
        let reading = self.reading(reader);
        let since = Span::from_ns(reading.as_ns().saturating_sub(tag.time.as_ns()));
        self.seen.connections[connection].arrived.add(since);
        let connection = ConnectionId(connection as u32);
        self.note(Event::Received { connection, tag, reading });
        let happened = Happened::Received { connection, tag, present: true, lateness };
        self.tell(reader, happened, &because);
    }

    fn finish(mut self) -> FederationObserved {
        let is_quiet = self.engine.frames_under_way() == 0;
        let is_whole = self.seen.cut == 0 && !self.seen.is_interrupted;
        for (seen, outgoing) in self.seen.connections.iter_mut().zip(&self.outgoing) {
            let missing = outgoing.as_ref().map_or(0, Outgoing::missing);
            seen.lost += if is_quiet && is_whole { missing } else { 0 };
        }
        for (seen, member) in self.seen.federates.iter_mut().zip(&self.members) {
            let counts = member.machine.counts();
            seen.tags = counts.tags;
            seen.ended = u32::from(member.has_ended);
            seen.overflows = counts.overflows;
            for input in &counts.inputs {
                let seen = &mut self.seen.connections[input.connection.index()];
                (seen.tardy, seen.late) = (input.tardy, input.late);
            }
        }
        (self.seen.chains, self.seen.is_chain_cut) = self.chains.observed();
        self.seen
    }
}

/// The processors of hosts with fewer of them than federates.
fn processors(system: &System, hosts: &[Option<NodeId>]) -> Vec<Option<Processors>> {
    let nodes = (0..).map(NodeId).zip(&system.nodes);
    let shared = nodes.map(|(id, node)| {
        let NodeKind::Host(host) = &node.kind else { return None };
        let sharing = hosts.iter().filter(|host| **host == Some(id)).count();
        let cores = host.cores.filter(|cores| usize::from(*cores) < sharing)?;
        Some(Processors::new(cores))
    });
    shared.collect()
}

/// A span between these, both possible.
fn draw(random: &mut Stream, least: Span, most: Span) -> Span {
    let count = (most - least).as_ns().max(0) as u64 + 1;
    least + Span::from_ns(random.below(count) as i64)
}

impl Member {
    fn new(
        subject: &Skeleton<'_>,
        settings: &Settings,
        seed: u64,
        at: usize,
        host: Option<NodeId>,
    ) -> Self {
        let id = FederateId(at as u32);
        let own = FederateSettings {
            maxwait: MaxWait::Forever,
            stop: Some(settings.duration),
            handlers_set: settings.handlers_set,
        };
        let machine = Federate::new(subject.federation, id, own);
        let reactions = subject.federation.reactions.iter();
        let causes: Vec<_> = reactions
            .filter(|reaction| reaction.federate == id)
            .flat_map(|reaction| &reaction.causes)
            .collect();
        let interval = |name: &String| {
            let found = causes.iter().find_map(|cause| match cause {
                Trigger::Sporadic { action, interval } if action == name => *interval,
                _ => None,
            });
            found.unwrap_or(settings.behaviour.unknown_interval).max(Span::from_ns(1))
        };
        let delay = match host.map(|host| &subject.system.node(host).kind) {
            Some(NodeKind::Host(host)) => host.wakeup.clone(),
            _ => Delay::Zero,
        };
        let mut random = Stream::new(seed, Purpose::Federate, at);
        Self {
            intervals: machine.actions().iter().map(interval).collect(),
            machine,
            host,
            reading: Span::from_ns(i64::MIN),
            alarm: None,
            tag: Tag::default(),
            executing: None,
            because: Vec::new(),
            coming: BTreeMap::new(),
            set: BTreeMap::new(),
            has_ended: false,
            rank: random.below(RANKS),
            random,
            events: Stream::new(seed, Purpose::FederateAction, at),
            wakeup: RandomDelay::new(&delay, Stream::new(seed, Purpose::FederateWakeup, at)),
            wakeup_max: delay.max(),
        }
    }

    /// The next wake-up delay.
    fn wakeup(&mut self, is_worst: bool) -> Span {
        if is_worst { self.wakeup_max } else { self.wakeup.draw() }
    }
}
