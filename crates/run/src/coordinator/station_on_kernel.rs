//! Stations that carry the channels of a run on networks of the kernel: a thread for each host,
//! between the sockets of its programs and its interface.

use crate::netns;
use crate::process::{RealTimePolicy, ask_for};
use onbeat::clock::MonoTime;
use onbeat::interface::{
    ChannelCounters, InterfaceStation, SlotErrors, StationDeliveries, StationDoor, StationEndpoint,
};
use onbeat_model::record::Role;
use onbeat_model::stations::{SlotErrorFigures, StationCounts};
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::Span;
use onbeat_runtime::network_code::instruction::Instruction;
use onbeat_runtime::network_code::program::StationProgram;
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The SCHED_FIFO priority of stations, where they may have one: above all programs that others
/// may have started, and below the kernel's own threads of 99.
const PRIORITY: u8 = 95;
/// How many slot errors are kept at most.
const SLOT_ERRORS: usize = 1 << 20;
/// How often a station looks whether it is to end.
const LOOK_AGAIN: Span = Span::from_ms(20);

/// What a station of a run is.
#[derive(Debug)]
pub(super) struct StationPart<'a> {
    pub(super) node: NodeId,
    pub(super) program: &'a StationProgram,
    pub(super) ends: Vec<(ChannelId, StationEndpoint)>,
    /// What is later is not sent: the plan counts with no more.
    pub(super) late_limit: Span,
    /// How many deliveries of each listener are kept.
    pub(super) deliveries: usize,
    /// How long it looks at the clock before an instant.
    pub(super) early: Span,
}

/// A station. Dropping it ends it.
#[derive(Debug)]
pub(super) struct StationOnKernel {
    node: NodeId,
    ends: Vec<(ChannelId, StationEndpoint, Arc<StationDoor>)>,
    /// Whether it begins rounds.
    is_master: bool,
    is_over: Arc<AtomicBool>,
    start: Option<MonoTime>,
    /// Until it begins.
    station: Option<Box<InterfaceStation>>,
    thread: Option<JoinHandle<Ended>>,
}

/// What a station leaves.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) counts: StationCounts,
    pub(super) channels: ChannelCounters,
    /// What was delivered to listeners of its host.
    pub(super) deliveries: Vec<(ChannelId, StationDeliveries)>,
    /// Whether it had its priority.
    pub(super) is_prior: bool,
    /// Why it ended before it was told to.
    pub(super) error: Option<io::Error>,
}

impl StationOnKernel {
    /// Opens its interface, in a network namespace or in this process's.
    ///
    /// # Errors
    /// The interface's, or that a program is not of the plan.
    pub(super) fn open(
        part: &StationPart<'_>,
        interface: &str,
        namespace: Option<BorrowedFd<'_>>,
    ) -> io::Result<Self> {
        let open = || {
            if let Some(namespace) = namespace {
                netns::enter(namespace)?;
            }
            let program = part.program.clone();
            let mut station =
                InterfaceStation::open(interface, program, part.late_limit, SLOT_ERRORS)?;
            let ends: Vec<_> = part.ends.iter().map(|(_, end)| *end).collect();
            let doors = station.carry(&ends, part.deliveries);
            let doors = doors.map_err(|(_, error)| io::Error::other(error.to_string()))?;
            station.look_early(part.early);
            Ok((station, doors))
        };
        // A thread of its own: what it opens stays in the namespace, this thread in its own.
        let opened: io::Result<_> = std::thread::scope(|scope| scope.spawn(open).join())
            .unwrap_or_else(|_| Err(io::Error::other("the thread that opens it panicked")));
        let (station, doors) = opened?;
        let ends = part.ends.iter().zip(doors);
        let begins = |word: &u64| Instruction::decode(*word) == Ok(Instruction::SyncMaster);
        Ok(Self {
            node: part.node,
            ends: ends.map(|((id, end), door)| (*id, *end, Arc::new(door))).collect(),
            is_master: part.program.words.iter().any(begins),
            is_over: Arc::default(),
            start: None,
            station: Some(Box::new(station)),
            thread: None,
        })
    }

    /// Whether the run came so far.
    pub(super) fn has_begun(&self) -> bool {
        self.station.is_none()
    }

    /// When the run's time is zero, if it has begun.
    pub(super) fn start(&self) -> Option<MonoTime> {
        self.start
    }

    /// Whether it begins rounds: all others are to wait for it.
    pub(super) fn is_master(&self) -> bool {
        self.is_master
    }

    /// Its host.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// The door to an end of a channel.
    pub(super) fn door(&self, channel: ChannelId, role: Role) -> Option<&Arc<StationDoor>> {
        let end = self.ends.iter().find(|(id, end, _)| (*id, end.role) == (channel, role));
        end.map(|(_, _, door)| door)
    }

    /// Begins. What it counts counts from `start` on: before, stations find each other.
    pub(super) fn begin(&mut self, start: MonoTime) -> io::Result<()> {
        let Some(station) = self.station.take() else { return Ok(()) };
        self.start = Some(start);
        let (node, is_over) = (self.node, Arc::clone(&self.is_over));
        let listens = |end: &StationEndpoint| end.role == Role::Listener;
        let listeners = self.ends.iter().filter(|(_, end, _)| listens(end));
        let listeners: Vec<_> = listeners.map(|(id, end, _)| (*id, end.buffer)).collect();
        let execute = move || {
            let mut station = *station;
            let ended = execute(&mut station, node, start, &is_over);
            let of_end = |(id, buffer): (_, _)| (id, station.deliveries(buffer));
            Ended { deliveries: listeners.into_iter().map(of_end).collect(), ..ended }
        };
        self.thread = Some(std::thread::Builder::new().name("station".to_owned()).spawn(execute)?);
        Ok(())
    }

    /// Ends it, within some [`LOOK_AGAIN`]; what it leaves, unless it has panicked or not begun.
    pub(super) fn finish(&mut self) -> Option<Ended> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

impl Drop for StationOnKernel {
    fn drop(&mut self) {
        self.finish();
    }
}

/// All but its deliveries.
fn execute(
    station: &mut InterfaceStation,
    node: NodeId,
    start: MonoTime,
    is_over: &AtomicBool,
) -> Ended {
    let is_prior = ask_for(&[], Some((RealTimePolicy::Fifo, PRIORITY)));
    let mut error = station.begin().err();
    let mut before = (counts(station, node), 0);
    while !is_over.load(Ordering::Relaxed) && error.is_none() {
        let now = MonoTime::now();
        if now < start {
            before = (counts(station, node), station.slot_errors().kept().len());
        }
        let until = if now < start { start } else { now + LOOK_AGAIN };
        error = station.step(until).err();
    }
    let (earlier, errors) = before;
    let all = since(counts(station, node), earlier);
    let counts = StationCounts {
        slot_error: figures(station.slot_errors(), errors),
        has_stopped: all.has_stopped || error.is_some(),
        ..all
    };
    let channels = station.channel_counters();
    Ended { counts, channels, deliveries: Vec::new(), is_prior, error }
}

/// What it has counted up to now, without slot errors.
fn counts(station: &mut InterfaceStation, node: NodeId) -> StationCounts {
    let (wire, channels) = (station.wire_counters(), station.channel_counters());
    let counters = station.station().counters();
    StationCounts {
        node,
        rounds: counters.rounds_begun + counters.rounds_seen,
        sent: wire.data,
        received: counters.data_received,
        unsent: channels.replaced,
        missed: wire.missed,
        late: wire.late,
        refused: wire.refused,
        timeouts: counters.sync_timeouts,
        overruns: counters.overruns,
        discarded: counters.syncs_discarded,
        has_stopped: counters.traps > 0,
        slot_error: None,
    }
}

/// All but what bounds depend on counts from `before` on.
fn since(all: StationCounts, before: StationCounts) -> StationCounts {
    StationCounts {
        rounds: all.rounds - before.rounds,
        sent: all.sent - before.sent,
        received: all.received - before.received,
        unsent: all.unsent - before.unsent,
        timeouts: all.timeouts - before.timeouts,
        overruns: all.overruns - before.overruns,
        discarded: all.discarded - before.discarded,
        ..all
    }
}

/// Of all but the first `before`; none if they were more than were kept.
fn figures(errors: &SlotErrors, before: usize) -> Option<SlotErrorFigures> {
    if errors.more() > 0 {
        return None;
    }
    let mut sorted = errors.kept().get(before..)?.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().checked_sub(1)?;
    // The least that so many of a hundred are not above.
    let of_hundred = |part: usize| sorted[(sorted.len() * part).div_ceil(100).max(1) - 1];
    Some(SlotErrorFigures { p50: of_hundred(50), p99: of_hundred(99), max: sorted[last] })
}
