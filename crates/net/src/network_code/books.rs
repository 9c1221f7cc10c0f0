//! What is counted of a run: by station, message and port. Participants share one book.

use super::log::StationLog;
use super::ports::PortBook;
use onbeat_model::system::{NodeId, PortId};
use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::network_code::counters::StationCounters;
use onbeat_runtime::network_code::instruction::MessageId;
use onbeat_runtime::network_code::trace::TraceEntry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What became of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkCodeObserved {
    /// From the beginning of the run to the instant at which all stations were stopped.
    pub duration: Span,
    /// By station, in the order in which they were given.
    pub stations: Vec<StationObserved>,
    /// By message, in the order of their identifiers: of those that some program sends or receives.
    pub messages: Vec<MessageObserved>,
    /// By egress port: those of stations, then of bridges, where a frame of a station left.
    pub ports: Vec<EgressObserved>,
}

impl NetworkCodeObserved {
    /// Messages lost, of all listeners.
    pub fn lost(&self) -> u64 {
        self.listeners().map(MessageListener::lost).sum()
    }

    /// Messages that were overwritten before they were received, of all listeners.
    pub fn overwritten(&self) -> u64 {
        self.listeners().map(|listener| listener.overwritten).sum()
    }

    /// Collisions, of all ports, with frames that were dropped because of one.
    pub fn collisions(&self) -> u64 {
        self.ports.iter().map(|port| port.collisions + port.dropped).sum()
    }

    fn listeners(&self) -> impl Iterator<Item = &MessageListener> {
        self.messages.iter().flat_map(|message| &message.listeners)
    }
}

/// What a station did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationObserved {
    /// Where it is.
    pub node: NodeId,
    /// When it was to start first.
    pub start: NetTime,
    /// How often it has been started.
    pub starts: u64,
    /// The sum of what it counted from each start on.
    pub counters: StationCounters,
    /// Messages of channels that programs wrote here and that no `send` has: those that another one
    /// replaced before, and those of a time when the station was off.
    pub unsent: u64,
    /// Its last trap.
    pub trap: Option<TraceEntry>,
}

/// A message of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageObserved {
    /// Which one.
    pub id: MessageId,
    /// Its name in the first program that has it.
    pub name: String,
    /// `send`s of it before the end of the run, of all stations.
    pub sent: u64,
    /// The stations whose programs have a `receive` of it.
    pub listeners: Vec<MessageListener>,
}

/// What a listener had of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageListener {
    /// Where it is.
    pub node: NodeId,
    /// When it was to start first. What was sent before counts for nothing here.
    pub start: NetTime,
    /// `send`s of it before the end of the run, of other stations, whose frames were to leave when
    /// it was to have started, or later.
    pub sent: u64,
    /// Of these frames: how many were whole at its port, while it was on or when it was stopped.
    pub arrived: u64,
    /// Of these: how many a `receive` copied.
    pub received: u64,
    /// Of these: how many another frame of the message replaced before a `receive` copied them.
    pub overwritten: u64,
    /// Of those received: from the issue of `create` to that of `receive`, in true time.
    pub latency: Option<SpanExtremes>,
    /// Of those that arrived: from the instant at which the first octet of the preamble was to
    /// leave the sender, to the last octet being at the port, in true time.
    pub wire: Option<SpanExtremes>,
}

impl MessageListener {
    /// Messages that were sent, and did not arrive.
    pub fn lost(&self) -> u64 {
        self.sent - self.arrived
    }
}

/// The least and the largest of several durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanExtremes {
    /// The least.
    pub min: Span,
    /// The largest.
    pub max: Span,
}

/// What an egress port did with frames of stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressObserved {
    /// Which one.
    pub port: PortId,
    /// Frames of stations that have left.
    pub frames: u64,
    /// Of these: how many were queued while a frame of another station waited there, or was on the
    /// wire with the gap behind it. Of two that want the port at overlapping times, one collides.
    pub collisions: u64,
    /// Of these: how many did not start when they were queued, and the frames of stations before
    /// them were off the wire: something else than stations held them up, if others did not, too.
    pub waits: u64,
    /// The longest time from being queued to the start of a frame, whatever held it up.
    pub wait_max: Span,
    /// Frames of stations that came by this port to a dedicated path and were dropped there, as a
    /// frame that came by another port was on it.
    pub dropped: u64,
}

/// Frames of a sender whose times are kept. More than ever are in flight from one station.
const KEPT: usize = 1 << 14;
/// Bits of a frame's number among those of its station.
const NUMBER_BITS: u32 = 40;

/// What is known of a frame when it is sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    /// The place of its message; none if it begins a round.
    message: Option<usize>,
    created: NetTime,
    /// When a program wrote it, if it is of a channel.
    written: Option<NetTime>,
    starts: NetTime,
}

#[derive(Debug)]
struct StationBook {
    observed: StationObserved,
    sent: VecDeque<Sending>,
    /// The number of the first of these.
    first: u64,
}

/// The book of a run.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// When all stations stop.
    pub(super) end: NetTime,
    stations: Vec<StationBook>,
    messages: Vec<MessageObserved>,
    ports: BTreeMap<PortId, PortBook>,
    /// Of each start of a station, if logs are kept, with its number.
    pub(super) logs: Vec<(usize, StationLog)>,
    /// Grows with everything that happens to a frame.
    pub(super) moves: u64,
}

impl Books {
    pub(super) fn add_station(&mut self, observed: StationObserved) {
        self.stations.push(StationBook { observed, sent: VecDeque::new(), first: 0 });
    }

    /// A message that a station sends or receives, by the name that it has there; once for each
    /// station that receives it, with when that starts.
    pub(super) fn add_message(
        &mut self,
        id: MessageId,
        name: &str,
        listener: Option<(NodeId, NetTime)>,
    ) {
        let at = self.messages.partition_point(|message| message.id < id);
        if self.messages.get(at).is_none_or(|message| message.id != id) {
            let name = name.to_owned();
            self.messages.insert(at, MessageObserved { id, name, sent: 0, listeners: Vec::new() });
        }
        let listeners = &mut self.messages[at].listeners;
        if let Some((node, start)) = listener {
            listeners.push(MessageListener {
                node,
                start,
                sent: 0,
                arrived: 0,
                received: 0,
                overwritten: 0,
                latency: None,
                wire: None,
            });
        }
    }

    pub(super) fn add_port(&mut self, port: PortId, book: PortBook) {
        self.ports.insert(port, book);
    }

    pub(super) fn station(&mut self, station: usize) -> &mut StationObserved {
        &mut self.stations[station].observed
    }

    /// The port's book, of one that stations' frames leave by.
    pub(super) fn port(&mut self, port: PortId) -> &mut PortBook {
        self.moves += 1;
        self.ports.get_mut(&port).expect("a port of a participant")
    }

    /// A station hands out a frame of a message, or the beginning of a round. Gives its token.
    pub(super) fn send(
        &mut self,
        station: usize,
        message: Option<MessageId>,
        (created, written): (NetTime, Option<NetTime>),
        starts: NetTime,
    ) -> u64 {
        let book = &mut self.stations[station];
        let node = book.observed.node;
        let message = message.and_then(|id| {
            let at = self.messages.binary_search_by_key(&id, |message| message.id).ok()?;
            let message = &mut self.messages[at];
            message.sent += 1;
            let others = message.listeners.iter_mut().filter(|listener| listener.node != node);
            let others = others.filter(|listener| listener.start <= starts);
            others.for_each(|listener| listener.sent += 1);
            Some(at)
        });
        if book.sent.len() == KEPT {
            book.sent.pop_front();
            book.first += 1;
        }
        book.sent.push_back(Sending { message, created, written, starts });
        (station as u64) << NUMBER_BITS | (book.first + book.sent.len() as u64 - 1)
    }

    /// The frame of a token, and the book of a listener for its message.
    fn find(&mut self, token: u64, listener: NodeId) -> Option<(Sending, &mut MessageListener)> {
        self.moves += 1;
        let book = self.stations.get(sender(token))?;
        let number = token & ((1 << NUMBER_BITS) - 1);
        let sending = *book.sent.get(usize::try_from(number.checked_sub(book.first)?).ok()?)?;
        let message = &mut self.messages[sending.message?];
        let found = message.listeners.iter_mut().find(|it| it.node == listener)?;
        (found.start <= sending.starts).then_some((sending, found))
    }

    /// The last octet of a frame is at a listener's port.
    pub(super) fn arrive(&mut self, token: u64, listener: NodeId, at: NetTime) {
        if let Some((sending, book)) = self.find(token, listener) {
            book.arrived += 1;
            SpanExtremes::see(&mut book.wire, at - sending.starts);
        }
    }

    /// A frame was replaced before it was received.
    pub(super) fn overwrite(&mut self, token: u64, listener: NodeId) {
        if let Some((_, book)) = self.find(token, listener) {
            book.overwritten += 1;
        }
    }

    /// A frame was received. Gives when a program wrote its message, if it is of a channel.
    pub(super) fn receive(&mut self, token: u64, listener: NodeId, at: NetTime) -> Option<NetTime> {
        let (sending, book) = self.find(token, listener)?;
        book.received += 1;
        SpanExtremes::see(&mut book.latency, at - sending.created);
        sending.written
    }

    pub(super) fn observed(&self, now: NetTime) -> NetworkCodeObserved {
        let ports = self.ports.values().map(|book| book.observed.clone());
        NetworkCodeObserved {
            duration: now.min(self.end) - NetTime::ZERO,
            stations: self.stations.iter().map(|book| book.observed.clone()).collect(),
            messages: self.messages.clone(),
            ports: ports.filter(|port| port.frames > 0 || port.dropped > 0).collect(),
        }
    }
}

/// The number of the station that a frame with this token is of.
pub(super) fn sender(token: u64) -> usize {
    (token >> NUMBER_BITS) as usize
}

impl SpanExtremes {
    fn see(extremes: &mut Option<Self>, span: Span) {
        let Self { min, max } = extremes.unwrap_or(Self { min: span, max: span });
        *extremes = Some(Self { min: min.min(span), max: max.max(span) });
    }
}

/// The book that all participants of a run write. One at a time does.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedBooks(Arc<Mutex<Books>>);

impl SharedBooks {
    pub(super) fn open(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
