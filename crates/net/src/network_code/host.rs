//! Hosts that execute programs.

use super::application::{Application, ApplicationBuffers};
use super::books::{Books, SharedBooks};
use super::clock::CycleClock;
use super::log::{StationContent, StationFrameSent, StationInput, StationLog};
use crate::links::{LinkEvent, Links};
use crate::participant::{Happened, Moment, Outgoing, Participant, Wants};
use onbeat_model::system::{NodeId, PortId};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{MacAddress, Octets, frame};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{Instruction, MessageId};
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::station::{Observer, Station, Transmission};
use onbeat_runtime::network_code::timing::{Cycles, RECEIVE_STORE};
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry};
use onbeat_runtime::network_code::wire::{
    FRAME_MAX, FrameContent, StationFrame, VlanTag, emit_data, emit_round,
};
use std::collections::{BTreeMap, VecDeque};

/// The tag of frames: of the highest priority, and of no VLAN but that of the port.
const TAG: VlanTag = VlanTag { vlan: 0, pcp: 7 };

/// What a station of a run is.
#[derive(Debug)]
pub(super) struct StationOnNode {
    /// Its number in the books.
    pub(super) number: usize,
    pub(super) node: NodeId,
    /// The one that it has.
    pub(super) port: PortId,
    pub(super) program: StationProgram,
    pub(super) mac: MacAddress,
    pub(super) clock: ClockError,
    /// It stops the run when it is about to begin another round.
    pub(super) rounds: Option<u64>,
    /// Whether it keeps a log.
    pub(super) logs: bool,
}

/// A host with a station.
#[derive(Debug)]
pub(super) struct StationHost {
    station: StationOnNode,
    application: Box<dyn Application>,
    links: Links,
    is_link_up: bool,
    /// When it starts, if it does not run; the end of time while it is off.
    starts: NetTime,
    /// When it starts at the earliest.
    earliest: NetTime,
    running: Option<Running>,
    /// What has been counted up to the last failure.
    before: StationCounters,
    books: SharedBooks,
    next: NetTime,
}

/// A station that has started.
#[derive(Debug)]
struct Running {
    station: Station,
    cycles: CycleClock,
    /// What has come, and is to be told in these cycles, in their order.
    coming: VecDeque<(Cycles, Coming)>,
    /// When the application is called next.
    application: NetTime,
    /// Of each message with a frame that was not received: its token.
    fresh: BTreeMap<MessageId, u64>,
    /// When the last `create` was issued.
    created: NetTime,
    /// Its last `sync master` ended the run and has not happened.
    has_ended: bool,
    log: StationLog,
}

#[derive(Debug)]
enum Coming {
    Data { message: MessageId, words: Vec<u32>, token: Option<u64> },
    Sync { round: u32, source: MacAddress },
}

/// What a call of a station came to, in order.
#[derive(Debug)]
enum Deed {
    Done(TraceEntry),
    Sends(StationFrameSent),
}

#[derive(Debug, Default)]
struct Deeds(Vec<Deed>);

impl Observer for Deeds {
    fn trace(&mut self, entry: TraceEntry) {
        self.0.push(Deed::Done(entry));
    }

    fn transmit(&mut self, at: Cycles, transmission: Transmission<'_>) {
        let content = match transmission {
            Transmission::Data { message, words } => StationContent::Data(message, words.to_vec()),
            Transmission::Sync { round } => StationContent::Round(round),
        };
        self.0.push(Deed::Sends(StationFrameSent { at, content }));
    }
}

impl StationHost {
    pub(super) fn new(
        station: StationOnNode,
        application: Box<dyn Application>,
        links: Links,
        start: NetTime,
        books: SharedBooks,
    ) -> Self {
        Self {
            station,
            application,
            next: start.min(links.next()),
            links,
            is_link_up: true,
            starts: start,
            earliest: start,
            running: None,
            before: StationCounters::default(),
            books,
        }
    }

    /// What faults do to the node.
    fn suffer(&mut self, now: NetTime, books: &mut Books) {
        while let Some(event) = self.links.take(now) {
            match event {
                LinkEvent::Link(_, is_up) => self.set_link(now, is_up),
                LinkEvent::Fails => self.fail(now, books),
                LinkEvent::Returns => {
                    self.is_link_up = true;
                    self.starts = now.max(self.earliest);
                }
            }
        }
        if self.running.is_none() && self.starts <= now {
            self.start(now, books);
        }
    }

    fn set_link(&mut self, now: NetTime, is_up: bool) {
        self.is_link_up = is_up;
        if let Some(running) = &mut self.running {
            running.station.link(is_up);
            let cycle = running.cycles.next_from(now);
            running.note(&self.station, cycle, StationInput::Link(is_up));
        }
    }

    /// It has forgotten all.
    fn fail(&mut self, now: NetTime, books: &mut Books) {
        self.starts = NetTime::MAX;
        if let Some(running) = self.running.take() {
            self.before += *running.station.counters();
            running.finish(&self.station, now, books);
        }
    }

    fn start(&mut self, now: NetTime, books: &mut Books) {
        let mut running = Running {
            station: Station::new(self.station.program.clone()),
            cycles: CycleClock::new(self.station.clock, now),
            coming: VecDeque::new(),
            application: now,
            fresh: BTreeMap::new(),
            created: now,
            has_ended: false,
            log: StationLog::default(),
        };
        running.station.link(self.is_link_up);
        running.note(&self.station, Cycles(0), StationInput::Link(self.is_link_up));
        self.running = Some(running);
        books.station(self.station.number).starts += 1;
    }

    /// Has the station carry out all up to now.
    fn act(&mut self, now: NetTime, wants: &mut Wants, books: &mut Books) {
        let Some(running) = &mut self.running else { return };
        if running.application <= now {
            let mut done = Vec::new();
            let station = &mut running.station;
            let mut buffers = ApplicationBuffers { station, done: &mut done };
            let next = self.application.act(now, &mut buffers);
            assert!(next > now, "an application that is called for ever at one instant");
            running.application = next;
            let cycle = running.cycles.next_from(now);
            done.into_iter().for_each(|input| running.note(&self.station, cycle, input));
        }
        let current = running.cycles.current(now);
        while let Some((at, coming)) = running.coming.pop_front_if(|(at, _)| *at <= current) {
            if let Some(before) = at.0.checked_sub(1) {
                running.advance(&self.station, Cycles(before), now, wants, books);
            }
            running.tell(&self.station, at, coming, books);
        }
        running.advance(&self.station, current, now, wants, books);
        let mut counters = self.before;
        counters += *running.station.counters();
        counters.rounds_begun -= u64::from(running.has_ended);
        books.station(self.station.number).counters = counters;
    }

    /// The run is over for it, and its log complete.
    pub(super) fn finish(&mut self, now: NetTime) {
        let shared = self.books.clone();
        if let Some(running) = self.running.take() {
            running.finish(&self.station, now, &mut shared.open());
        }
    }

    /// When it has something to do next.
    fn look(&self) -> NetTime {
        let own = match &self.running {
            None => self.starts,
            Some(running) => running.next(),
        };
        own.min(self.links.next())
    }
}

impl Participant for StationHost {
    fn handle(&mut self, moment: &Moment, happened: Happened<'_>, wants: &mut Wants) {
        let now = moment.now;
        let shared = self.books.clone();
        let mut books = shared.open();
        if let Happened::Sent { token, at, .. } = happened {
            books.port(self.station.port).leave(token, at);
        }
        let runs = now < books.end;
        if runs {
            self.suffer(now, &mut books);
        }
        if let Some(running) = &mut self.running {
            match happened {
                Happened::Header { octets, .. } => running.hear_header(now, octets),
                Happened::Received { token, octets, .. } => {
                    token.iter().for_each(|token| books.arrive(*token, self.station.node, now));
                    running.hear(now, token, octets);
                }
                Happened::Timer | Happened::Sent { .. } => {}
            }
        }
        if runs {
            self.act(now, wants, &mut books);
        }
        self.next = if now < books.end { self.look() } else { NetTime::MAX };
    }

    fn next(&self) -> NetTime {
        self.next
    }

    /// Up to the EtherType of a frame that is like its own.
    fn header(&self) -> Option<Octets> {
        let is_tagged = self.station.program.medium.tagged;
        Some(if is_tagged { frame::HEADER + frame::TAG } else { frame::HEADER })
    }
}

impl Running {
    fn next(&self) -> NetTime {
        let coming = self.coming.front().map_or(NetTime::MAX, |(at, _)| self.cycles.begins(*at));
        let issue = self.cycles.begins(self.station.next());
        coming.min(issue).min(self.application)
    }

    /// The EtherType of a frame has come now.
    fn hear_header(&mut self, now: NetTime, octets: &[u8]) {
        let Ok(frame) = StationFrame::parse(octets) else { return };
        if let FrameContent::Round(round) = frame.content {
            let source = frame.source;
            self.come(self.cycles.next_from(now), Coming::Sync { round, source });
        }
    }

    /// The last octet of a frame has come now.
    fn hear(&mut self, now: NetTime, token: Option<u64>, octets: &[u8]) {
        let Ok(frame) = StationFrame::parse(octets) else { return };
        if let FrameContent::Data { message, words } = frame.content {
            let at = self.cycles.next_from(now) + RECEIVE_STORE;
            let words = words.iter().collect();
            self.come(at, Coming::Data { message, words, token });
        }
    }

    fn come(&mut self, at: Cycles, coming: Coming) {
        let place = self.coming.partition_point(|(other, _)| *other <= at);
        self.coming.insert(place, (at, coming));
    }

    /// Tells the station what has come.
    fn tell(&mut self, of: &StationOnNode, at: Cycles, coming: Coming, books: &mut Books) {
        match coming {
            Coming::Sync { round, source } => {
                self.station.sync_received(at, round, source);
                self.note(of, at, StationInput::Sync(round, source));
            }
            Coming::Data { message, words, token } => {
                let stored = self.station.counters().data_received;
                self.station.data_received(at, message, words.iter().copied());
                let is_stored = self.station.counters().data_received > stored;
                if let Some(token) = token.filter(|_| is_stored)
                    && let Some(replaced) = self.fresh.insert(message, token)
                {
                    books.overwrite(replaced, of.node);
                }
                self.note(of, at, StationInput::Data(message, words));
            }
        }
    }

    /// Has the station carry out all up to a cycle, unless the run ends before.
    fn advance(
        &mut self,
        of: &StationOnNode,
        cycle: Cycles,
        now: NetTime,
        wants: &mut Wants,
        books: &mut Books,
    ) {
        let before = self.station.counters().rounds_begun;
        let mut deeds = Deeds::default();
        self.station.advance(cycle, &mut deeds);
        // Each instruction has its own call.
        // Each instruction has its own call: nothing is with the one that ends the run.
        if of.rounds == Some(before) && self.station.counters().rounds_begun > before {
            self.has_ended = true;
            books.end = now;
            return;
        }
        for deed in deeds.0 {
            match deed {
                Deed::Done(entry) => self.done(of, entry, books),
                Deed::Sends(frame) => self.send(of, frame, now, wants, books),
            }
        }
    }

    /// An instruction has been carried out.
    fn done(&mut self, of: &StationOnNode, entry: TraceEntry, books: &mut Books) {
        let instruction = of.program.word(entry.address).map(Instruction::decode);
        match (instruction, entry.outcome) {
            (_, Outcome::Trapped(_)) => books.station(of.number).trap = Some(entry),
            (Some(Ok(Instruction::Create { .. })), _) => {
                self.created = self.cycles.begins(entry.issued);
            }
            (Some(Ok(Instruction::Receive { message, .. })), Outcome::Received(true)) => {
                if let Some(token) = self.fresh.remove(&message) {
                    books.receive(token, of.node, self.cycles.begins(entry.issued));
                }
            }
            _ => {}
        }
        if of.logs {
            self.log.trace.push(entry);
        }
    }

    /// A frame is to leave.
    fn send(
        &mut self,
        of: &StationOnNode,
        frame: StationFrameSent,
        now: NetTime,
        wants: &mut Wants,
        books: &mut Books,
    ) {
        let starts = self.cycles.begins(frame.at);
        let tag = of.program.medium.tagged.then_some(TAG);
        let mut octets = vec![0; FRAME_MAX];
        let (length, message, created) = match &frame.content {
            StationContent::Data(message, words) => {
                let length = emit_data(of.mac, tag, *message, words, &mut octets);
                (length, Some(*message), self.created)
            }
            StationContent::Round(round) => {
                (emit_round(of.mac, tag, *round, &mut octets), None, now)
            }
        };
        octets.truncate(length);
        let token = books.send(of.number, message, created, starts);
        books.port(of.port).queue(token, starts, length);
        let after = (starts - now).max(Span::ZERO);
        wants.send(Outgoing { port: 0, octets, after, token: Some(token) });
        if of.logs {
            self.log.sent.push(frame);
        }
    }

    fn note(&mut self, of: &StationOnNode, at: Cycles, input: StationInput) {
        if of.logs {
            self.log.inputs.push((at, input));
        }
    }

    /// It is over for it.
    fn finish(mut self, of: &StationOnNode, now: NetTime, books: &mut Books) {
        if of.logs {
            self.log.end = self.cycles.next_from(now);
            books.logs.push((of.number, self.log));
        }
    }
}
