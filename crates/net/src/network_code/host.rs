//! Hosts that execute programs.

use super::application::{Application, ApplicationBuffers};
use super::books::{Books, SharedBooks};
use super::carrier::Carrier;
use super::clock::CycleClock;
use super::log::{StationContent, StationFrameSent, StationInput, StationLog};
use crate::links::{LinkEvent, Links};
use crate::participant::{CarriedMessage, Happened, Moment, Outgoing, Participant, Wants};
use onbeat_model::system::{ChannelId, NodeId, PortId};
use onbeat_model::time::{ClockError, NetTime, Span};
use onbeat_model::units::{MacAddress, Octets, frame};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::{BufferId, Instruction, MessageId};
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::station::{Observer, Station, Transmission};
use onbeat_runtime::network_code::timing::{Cycles, RECEIVE_STORE, issue_cycles};
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
    carrier: Carrier,
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
    /// Of each message with a frame that was not received.
    fresh: BTreeMap<MessageId, FreshFrame>,
    /// When the last `create` was issued, and when its message was written if it is of a channel.
    created: (NetTime, Option<NetTime>),
    /// Its last `sync master` ended the run and has not happened.
    has_ended: bool,
    log: StationLog,
}

#[derive(Debug)]
enum Coming {
    Data { message: MessageId, words: Vec<u32>, frame: FreshFrame },
    Sync { round: u32, source: MacAddress },
}

/// A frame that has come.
#[derive(Clone, Copy, Debug)]
struct FreshFrame {
    token: Option<u64>,
    /// When its last octet was there.
    arrived: NetTime,
}

/// What a station is called with.
#[derive(Debug)]
struct StationCall<'a> {
    of: &'a StationOnNode,
    now: NetTime,
    wants: &'a mut Wants,
    books: &'a mut Books,
    carrier: &'a mut Carrier,
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
        (application, carrier, links): (Box<dyn Application>, Carrier, Links),
        start: NetTime,
        books: SharedBooks,
    ) -> Self {
        Self {
            station,
            application,
            carrier,
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
            created: (now, None),
            has_ended: false,
            log: StationLog::default(),
        };
        running.station.link(self.is_link_up);
        running.note(&self.station, Cycles(0), StationInput::Link(self.is_link_up));
        self.carrier.restart();
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
        let (of, carrier) = (&self.station, &mut self.carrier);
        let mut call = StationCall { of, now, wants, books, carrier };
        while let Some((at, coming)) = running.coming.pop_front_if(|(at, _)| *at <= current) {
            if let Some(before) = at.0.checked_sub(1) {
                running.advance(&mut call, Cycles(before));
            }
            running.tell(&mut call, at, coming);
        }
        running.advance(&mut call, current);
        let mut counters = self.before;
        counters += *running.station.counters();
        counters.rounds_begun -= u64::from(running.has_ended);
        books.station(self.station.number).counters = counters;
    }

    /// A program writes a message of a channel.
    fn write(
        &mut self,
        now: NetTime,
        (channel, octets): (ChannelId, &[u8]),
        wants: &mut Wants,
        books: &mut Books,
    ) {
        let mut is_lost = true;
        if let Some(running) = &mut self.running {
            let (into, loses) = self.carrier.write(now, channel, octets);
            is_lost = loses;
            if let Some((buffer, words)) = into {
                running.write(&self.station, running.cycles.next_from(now), buffer, words);
            }
        }
        if is_lost {
            books.station(self.station.number).unsent += 1;
            wants.lose(channel);
        }
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
                Happened::Timer | Happened::Sent { .. } | Happened::Written { .. } => {}
            }
        }
        if let Happened::Written { channel, octets } = happened {
            self.write(now, (channel, octets), wants, &mut books);
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
            let frame = FreshFrame { token, arrived: now };
            self.come(at, Coming::Data { message, words, frame });
        }
    }

    fn come(&mut self, at: Cycles, coming: Coming) {
        let place = self.coming.partition_point(|(other, _)| *other <= at);
        self.coming.insert(place, (at, coming));
    }

    /// Tells the station what has come.
    fn tell(&mut self, call: &mut StationCall<'_>, at: Cycles, coming: Coming) {
        match coming {
            Coming::Sync { round, source } => {
                self.station.sync_received(at, round, source);
                self.note(call.of, at, StationInput::Sync(round, source));
            }
            Coming::Data { message, words, frame } => {
                let stored = self.station.counters().data_received;
                self.station.data_received(at, message, words.iter().copied());
                let is_stored = self.station.counters().data_received > stored;
                if is_stored
                    && let Some(replaced) = self.fresh.insert(message, frame)
                    && let Some(token) = replaced.token
                {
                    call.books.overwrite(token, call.of.node);
                }
                self.note(call.of, at, StationInput::Data(message, words));
            }
        }
    }

    /// Has the station carry out all up to a cycle, unless the run ends before.
    fn advance(&mut self, call: &mut StationCall<'_>, cycle: Cycles) {
        let before = self.station.counters().rounds_begun;
        let mut deeds = Deeds::default();
        self.station.advance(cycle, &mut deeds);
        // Each instruction has its own call: nothing is with the one that ends the run.
        if call.of.rounds == Some(before) && self.station.counters().rounds_begun > before {
            self.has_ended = true;
            call.books.end = call.now;
            return;
        }
        for deed in deeds.0 {
            match deed {
                Deed::Done(entry) => self.done(call, entry),
                Deed::Sends(frame) => self.send(call, frame),
            }
        }
    }

    /// An instruction has been carried out.
    fn done(&mut self, call: &mut StationCall<'_>, entry: TraceEntry) {
        let instruction = call.of.program.word(entry.address).map(Instruction::decode);
        match (instruction, entry.outcome) {
            (_, Outcome::Trapped(_)) => call.books.station(call.of.number).trap = Some(entry),
            (Some(Ok(Instruction::Create { buffer })), _) => {
                let created = call.carrier.created(buffer);
                let written = created.map(|(written, _)| written);
                self.created = (self.cycles.begins(entry.issued), written);
                if let Some((_, Some(next))) = created {
                    self.write(call.of, entry.issued + Cycles(1), buffer, next);
                }
            }
            (
                Some(Ok(instruction @ Instruction::Receive { message, buffer })),
                Outcome::Received(true),
            ) => self.receive(call, (instruction, entry.issued), message, buffer),
            _ => {}
        }
        if call.of.logs {
            self.log.trace.push(entry);
        }
    }

    /// A frame was received.
    fn receive(
        &mut self,
        call: &mut StationCall<'_>,
        (instruction, issued): (Instruction, Cycles),
        message: MessageId,
        buffer: BufferId,
    ) {
        let Some(FreshFrame { token, arrived }) = self.fresh.remove(&message) else { return };
        let at = self.cycles.begins(issued);
        let written = token.and_then(|token| call.books.receive(token, call.of.node, at));
        let Ok(words) = self.station.read(buffer) else { return };
        let done = issued + issue_cycles(instruction, words.len() as u16);
        if let Some(frame) = call.carrier.received(buffer, words) {
            call.wants.deliver(CarriedMessage {
                channel: frame.channel,
                listener: frame.listener,
                octets: frame.octets.to_vec(),
                written: written.unwrap_or(arrived),
                arrived,
                after: self.cycles.begins(done) - call.now,
            });
        }
    }

    /// A frame is to leave.
    fn send(&mut self, call: &mut StationCall<'_>, frame: StationFrameSent) {
        let of = call.of;
        let starts = self.cycles.begins(frame.at);
        let tag = of.program.medium.tagged.then_some(TAG);
        let mut octets = vec![0; FRAME_MAX];
        let (length, message, created) = match &frame.content {
            StationContent::Data(message, words) => {
                let length = emit_data(of.mac, tag, *message, words, &mut octets);
                (length, Some(*message), self.created)
            }
            StationContent::Round(round) => {
                (emit_round(of.mac, tag, *round, &mut octets), None, (call.now, None))
            }
        };
        octets.truncate(length);
        let token = call.books.send(of.number, message, created, starts);
        call.books.port(of.port).queue(token, starts, length);
        let after = (starts - call.now).max(Span::ZERO);
        call.wants.send(Outgoing { port: 0, octets, after, token: Some(token) });
        if of.logs {
            self.log.sent.push(frame);
        }
    }

    /// A buffer has other words, which an instruction of this cycle sees.
    fn write(&mut self, of: &StationOnNode, at: Cycles, buffer: BufferId, words: &[u32]) {
        if self.station.write(buffer, words).is_ok() {
            self.note(of, at, StationInput::Write(buffer, words.to_vec()));
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
