//! Stations that carry the channels of a run on networks of the kernel: a thread for each host,
//! between the sockets of its programs and its interface.

use crate::netns;
use crate::process::ask_for;
use onbeat::clock::MonoTime;
use onbeat::interface::{
    ChannelCounters, InterfaceStation, SlotErrors, StationDoor, StationEndpoint,
};
use onbeat_model::record::Role;
use onbeat_model::stations::{SlotErrorFigures, StationCounts};
use onbeat_model::system::{ChannelId, NodeId};
use onbeat_model::time::Span;
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
}

/// A station. Dropping it ends it.
#[derive(Debug)]
pub(super) struct StationOnKernel {
    node: NodeId,
    doors: Vec<(ChannelId, Role, Arc<StationDoor>)>,
    is_over: Arc<AtomicBool>,
    /// Until it begins.
    station: Option<Box<InterfaceStation>>,
    thread: Option<JoinHandle<Ended>>,
}

/// What a station leaves.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) counts: StationCounts,
    pub(super) channels: ChannelCounters,
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
            let doors = station.carry(&ends);
            let doors = doors.map_err(|(_, error)| io::Error::other(error.to_string()))?;
            Ok((station, doors))
        };
        // A thread of its own: what it opens stays in the namespace, this thread in its own.
        let opened: io::Result<_> = std::thread::scope(|scope| scope.spawn(open).join())
            .unwrap_or_else(|_| Err(io::Error::other("the thread that opens it panicked")));
        let (station, doors) = opened?;
        let ends = part.ends.iter().zip(doors);
        Ok(Self {
            node: part.node,
            doors: ends.map(|((id, end), door)| (*id, end.role, Arc::new(door))).collect(),
            is_over: Arc::default(),
            station: Some(Box::new(station)),
            thread: None,
        })
    }

    /// Whether the run came so far.
    pub(super) fn has_begun(&self) -> bool {
        self.station.is_none()
    }

    /// Its host.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// The door to an end of a channel.
    pub(super) fn door(&self, channel: ChannelId, role: Role) -> Option<&Arc<StationDoor>> {
        let door = self.doors.iter().find(|(id, of, _)| (*id, *of) == (channel, role));
        door.map(|(_, _, door)| door)
    }

    /// Begins. What it counts counts from `start` on: before, stations find each other.
    pub(super) fn begin(&mut self, start: MonoTime) -> io::Result<()> {
        let Some(station) = self.station.take() else { return Ok(()) };
        let (node, is_over) = (self.node, Arc::clone(&self.is_over));
        let execute = move || execute(*station, node, start, &is_over);
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

fn execute(
    mut station: InterfaceStation,
    node: NodeId,
    start: MonoTime,
    is_over: &AtomicBool,
) -> Ended {
    let is_prior = ask_for(&[], Some(PRIORITY));
    let mut error = None;
    station.begin(MonoTime::now());
    let mut before = (counts(&mut station, node), 0);
    while !is_over.load(Ordering::Relaxed) && error.is_none() {
        let now = MonoTime::now();
        if now < start {
            before = (counts(&mut station, node), station.slot_errors().kept().len());
        }
        let until = if now < start { start } else { now + LOOK_AGAIN };
        error = station.step(until).err();
    }
    let (earlier, errors) = before;
    let counts = StationCounts {
        slot_error: figures(station.slot_errors(), errors),
        ..since(counts(&mut station, node), earlier)
    };
    Ended { counts, channels: station.channel_counters(), is_prior, error }
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
        missed: wire.missed + wire.refused,
        late: wire.late,
        timeouts: counters.sync_timeouts,
        overruns: counters.overruns,
        discarded: counters.syncs_discarded,
        has_stopped: counters.traps > 0,
        slot_error: None,
    }
}

fn since(all: StationCounts, before: StationCounts) -> StationCounts {
    StationCounts {
        rounds: all.rounds - before.rounds,
        sent: all.sent - before.sent,
        received: all.received - before.received,
        unsent: all.unsent - before.unsent,
        missed: all.missed - before.missed,
        late: all.late - before.late,
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
