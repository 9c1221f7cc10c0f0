//! A station of Network Code on a real interface: its program sends and receives by this machine's
//! clock (`docs/network-code.md`, "On interfaces").
//!
//! Its cycles are nanoseconds of CLOCK_MONOTONIC since it was opened, 8 each. The instant of a
//! frame that comes is the kernel's, so a thread that wakes late takes what came in its order in
//! time; the frame that begins a round counts from there. What the thread hands over late leaves
//! late: [`SlotErrors`] has by how much. What would leave later than a limit is not sent: by then
//! the wire is another station's.
//!
//! A station that carries channels has sockets to the programs of its host ([`StationDoor`]): its
//! thread is the one between them and the wire, and the only one.

mod channels;
mod end;
mod service;

pub use channels::{
    ChannelCounters, StationDeliveries, StationDelivery, StationDoor, StationEndpoint,
    StationEndpointError,
};
pub use end::StationSocket;
pub(super) use service::connect;
pub use service::{ServedEndpoint, StationService};

use crate::clock::{MonoTime, want_exact_timers};
use crate::interface::{Interface, option, packet, socket};
use channels::StationChannels;
use onbeat_model::time::Span;
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::station::{
    INSTRUCTIONS_PER_ADVANCE, Observer, Station, Transmission,
};
use onbeat_runtime::network_code::timing::{CYCLE_NS, Cycles};
use onbeat_runtime::network_code::trace::{Outcome, TraceEntry};
use onbeat_runtime::network_code::wire::{
    ETHERTYPE_DATA, ETHERTYPE_ROUND, FRAME_MAX, FrameContent, GROUP, StationFrame, VlanTag,
    emit_data, emit_round,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io::{self, IoSliceMut};

/// The priority code point of tagged frames, and the queue of all: nothing goes before a round.
const PCP: u8 = 7;
/// The VLAN of tagged frames: none, the tag has the priority alone.
const PRIORITY_TAGGED: u16 = 0;
/// By how much sleeps are begun sooner at most, because earlier ones ended late.
const EARLY_MAX: Span = Span::from_us(100);
/// By how much more, when a sleep ended later than that, and less, when it did not: so one of nine
/// does.
const EARLIER: Span = Span::from_ns(1_000);
const LESS_EARLY: Span = Span::from_ns(125);
/// How many frames are taken before the program continues: more than a full receive queue of a
/// neighbour brings in one wait.
const AT_ONCE: usize = 256;

/// How late transmissions were: from the instant at which the first octet should have left to that
/// at which the kernel had the frame.
#[derive(Debug)]
pub struct SlotErrors {
    kept: Vec<Span>,
    room: usize,
    more: u64,
}

impl SlotErrors {
    /// Those that were kept, in their order.
    pub fn kept(&self) -> &[Span] {
        &self.kept
    }

    /// How many came when there was no room.
    pub fn more(&self) -> u64 {
        self.more
    }

    fn note(&mut self, error: Span) {
        if self.kept.len() < self.room {
            self.kept.push(error);
        } else {
            self.more += 1;
        }
    }
}

/// A station on an interface.
#[derive(Debug)]
pub struct InterfaceStation {
    station: Station,
    channels: StationChannels,
    wire: StationWire,
    timer: OwnedFd,
    received: [u8; FRAME_MAX],
    /// The latest instant of what came.
    latest: Cycles,
    /// By how much sleeps are begun sooner, and by how much at most.
    early: Span,
    early_max: Span,
}

/// The way to the link.
#[derive(Debug)]
struct StationWire {
    socket: OwnedFd,
    interface: Interface,
    tag: Option<VlanTag>,
    start: MonoTime,
    frame: [u8; FRAME_MAX],
    late_limit: Span,
    errors: SlotErrors,
    counters: WireCounters,
    link_up: bool,
    /// What was carried out last.
    done: Option<TraceEntry>,
    /// Behind how many rounds it ends.
    rounds: u64,
    /// How many it has begun, or should have.
    begun: u64,
}

/// What became of a station's transmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Frames that begin a round, taken by the kernel.
    pub rounds: u64,
    /// Data frames, taken by the kernel.
    pub data: u64,
    /// Frames that were not sent because it was too late for them.
    pub missed: u64,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// Frames that the kernel had later than they may be sent, because this thread was held up on
    /// the way there; and those that the program took later than that.
    pub late: u64,
}

impl InterfaceStation {
    /// Opens an interface for a program, whose first instruction is issued now. A frame that is
    /// later than `late_limit` is not sent. Keeps as many slot errors as `errors` says; the memory
    /// for them is taken here.
    ///
    /// # Errors
    /// There is no such interface, or this process may not open packet sockets.
    ///
    /// # Panics
    /// When the program exceeds a limit ([`StationProgram::keeps_limits`]).
    pub fn open(
        name: &str,
        program: StationProgram,
        late_limit: Span,
        errors: usize,
    ) -> io::Result<Self> {
        let interface = Interface::named(name)?;
        let socket = packet::open()?;
        packet::only_ethertypes(&socket, [ETHERTYPE_DATA, ETHERTYPE_ROUND])?;
        let one: i32 = 1;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one)?;
        let priority = u32::from(PCP);
        option::set(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)?;
        let wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        option::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &wanted)?;
        packet::join(&socket, &interface, GROUP)?;
        packet::bind(&socket, &interface, libc::ETH_P_ALL as u16)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let tag = program.medium.tagged.then_some(VlanTag { vlan: PRIORITY_TAGGED, pcp: PCP });
        let link_up = interface.up && interface.running;
        let channels = StationChannels::new()?;
        let mut station = Station::new(program);
        station.link(link_up);
        // Written to, so that the memory is there when it is needed.
        let mut kept = vec![Span::from_ns(1); errors];
        kept.clear();
        let errors = SlotErrors { kept, room: errors, more: 0 };
        let start = MonoTime::now();
        let wire = StationWire {
            socket,
            interface,
            tag,
            start,
            frame: [0; FRAME_MAX],
            late_limit,
            errors,
            counters: WireCounters::default(),
            link_up,
            done: None,
            rounds: u64::MAX,
            begun: 0,
        };
        let (received, latest) = ([0; FRAME_MAX], Cycles(0));
        let (early, early_max) = (Span::ZERO, EARLY_MAX);
        Ok(Self { station, channels, wire, timer, received, latest, early, early_max })
    }

    /// Lets it carry channels from now on; gives the doors to them, in the order of the ends. Keeps
    /// so many deliveries of each listener; the memory for them is taken here.
    ///
    /// # Errors
    /// Which end it cannot carry, and why.
    pub fn carry(
        &mut self,
        ends: &[StationEndpoint],
        deliveries: usize,
    ) -> Result<Vec<StationDoor>, (usize, StationEndpointError)> {
        self.channels.carry(self.station.program(), ends, deliveries)
    }

    /// Has the first instruction issued now, for one that has issued none: what came before is of
    /// rounds that it has no part in.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begin(&mut self) -> io::Result<()> {
        let mut parts = [IoSliceMut::new(&mut self.received)];
        loop {
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            let (got, _) = socket::receive(&self.wire.socket, &mut parts, flags, None);
            match socket::unless_none(got) {
                Ok(None) => break,
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => break,
                Ok(Some(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.wire.start = MonoTime::now();
        Ok(())
    }

    /// Has it end when the round behind so many begins, also when it is late and several rounds
    /// are due at once: nothing is carried out any more.
    pub fn end_after(&mut self, rounds: u64) {
        self.wire.rounds = rounds;
    }

    /// Whether it has ended ([`end_after`](Self::end_after)).
    pub fn is_over(&self) -> bool {
        self.wire.is_over(&self.station)
    }

    /// The station: what its application writes and reads.
    pub fn station(&mut self) -> &mut Station {
        &mut self.station
    }

    /// A data buffer, as the application reads it; empty if there is no such one.
    pub fn read(&self, buffer: BufferId) -> &[u32] {
        self.station.read(buffer).unwrap_or_default()
    }

    /// How late it was.
    pub fn slot_errors(&self) -> &SlotErrors {
        &self.wire.errors
    }

    /// Has it look at the clock before an instant for no longer than this, and at most 100 µs:
    /// where several stations share processors, each waits for the others meanwhile.
    pub fn look_early(&mut self, most: Span) {
        self.early_max = most.clamp(Span::ZERO, EARLY_MAX);
    }

    /// What was delivered through a buffer to a listener; it is kept no longer.
    pub fn deliveries(&mut self, buffer: BufferId) -> StationDeliveries {
        self.channels.deliveries(buffer)
    }

    /// What became of messages of the channels that it carries.
    pub fn channel_counters(&self) -> ChannelCounters {
        self.channels.counters()
    }

    /// What became of its transmissions.
    pub fn wire_counters(&self) -> WireCounters {
        self.wire.counters
    }

    /// Waits until something is due, at most until `until`, and carries it out; where the program
    /// waits for a round, a frame ends the wait too.
    ///
    /// Real-time: sleeps to shortly before an instant and looks at the clock for the rest, as long
    /// as sleeps are usually late; then a system call for each frame or message that comes or
    /// leaves. Allocates nothing.
    ///
    /// # Errors
    /// The kernel's, but for that the link is down.
    pub fn step(&mut self, until: MonoTime) -> io::Result<()> {
        want_exact_timers();
        let due = self.wire.when(self.station.next());
        if self.station.waits_for_round() {
            self.wait_for_frame(due.min(until))?;
        } else if due <= until {
            self.sleep(due)?;
        } else {
            until.sleep();
        }
        let now = MonoTime::now();
        self.channels.take_written(&mut self.station)?;
        self.take_frames(now)?;
        let now = self.wire.cycles(now).max(self.latest);
        advance((&mut self.station, &mut self.channels, &mut self.wire), now);
        self.station.link(self.wire.link_up);
        Ok(())
    }

    /// Sleeps to an instant. What programs have written is taken before it, but for the last.
    fn sleep(&mut self, due: MonoTime) -> io::Result<()> {
        let wake = due + -self.early;
        if MonoTime::now() < wake {
            wake.sleep();
            self.early = match MonoTime::now() > due {
                true => (self.early + EARLIER).min(self.early_max),
                false => (self.early - LESS_EARLY).max(Span::ZERO),
            };
        }
        self.channels.take_written(&mut self.station)?;
        while MonoTime::now() < due {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Waits for a frame, until an instant.
    fn wait_for_frame(&self, until: MonoTime) -> io::Result<()> {
        let at = until.max(MonoTime::from_ns(1)).as_timespec();
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        let mut set = [
            PollFd::new(&self.wire.socket, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        match poll(&mut set, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the station what has come up to now, each frame at its instant.
    fn take_frames(&mut self, now: MonoTime) -> io::Result<()> {
        let apart = realtime_ns() - MonoTime::now().as_ns();
        for _ in 0..AT_ONCE {
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            let mut parts = [IoSliceMut::new(&mut self.received)];
            let (got, stamp) = socket::receive(&self.wire.socket, &mut parts, flags, None);
            let length = match socket::unless_none(got) {
                Ok(None) => return Ok(()),
                Ok(Some(length)) => length,
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                    self.wire.link_up = false;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let noted = stamp.and_then(|stamp| stamp.software);
            let at = noted.map_or(now, |ns| MonoTime::from_ns(ns - apart).min(MonoTime::now()));
            let at = self.wire.cycles(at).max(self.latest);
            // One that is longer than a frame may be is shown with its whole length.
            let octets = self.received.get(..length).unwrap_or_default();
            let Ok(frame) = StationFrame::parse(octets) else {
                self.station.damaged();
                continue;
            };
            self.latest = at;
            let parts = (&mut self.station, &mut self.channels, &mut self.wire);
            advance(parts, at - Cycles(1));
            if self.is_over() {
                break;
            }
            match frame.content {
                FrameContent::Data { message, words } => {
                    self.station.data_received(at, message, words.iter());
                }
                FrameContent::Round(round) => {
                    self.station.sync_received(at, round, frame.source);
                }
            }
        }
        Ok(())
    }
}

/// Carries out what is issued up to a cycle.
fn advance(
    (station, channels, wire): (&mut Station, &mut StationChannels, &mut StationWire),
    until: Cycles,
) {
    for _ in 0..INSTRUCTIONS_PER_ADVANCE {
        if wire.is_over(station) || !station.step(until, wire) {
            return;
        }
        if let Some(entry) = wire.done.take() {
            channels.done(entry, station);
            let is_late = || MonoTime::now() - wire.when(entry.next) > wire.late_limit;
            wire.counters.late += u64::from(entry.outcome == Outcome::Received(true) && is_late());
        }
    }
}

impl StationWire {
    /// Whether the station has begun or seen a round too many.
    fn is_over(&self, station: &Station) -> bool {
        let counters = station.counters();
        counters.rounds_begun + counters.rounds_seen > self.rounds
    }

    /// The cycle of an instant; of one before the start, the first.
    fn cycles(&self, at: MonoTime) -> Cycles {
        let ns = u64::try_from((at - self.start).as_ns()).unwrap_or_default();
        Cycles(ns / u64::from(CYCLE_NS))
    }

    /// When a cycle begins; no later than clocks can say.
    fn when(&self, at: Cycles) -> MonoTime {
        let ns = i64::try_from(at.0.saturating_mul(u64::from(CYCLE_NS))).unwrap_or(i64::MAX);
        MonoTime::from_ns(self.start.as_ns().saturating_add(ns))
    }
}

impl Observer for StationWire {
    fn trace(&mut self, entry: TraceEntry) {
        self.done = Some(entry);
    }

    fn transmit(&mut self, at: Cycles, transmission: Transmission<'_>) {
        let due = self.when(at);
        if matches!(transmission, Transmission::Sync { .. }) {
            if self.begun == self.rounds {
                // It only shows that the last round is over.
                return;
            }
            self.begun += 1;
        }
        if MonoTime::now() - due > self.late_limit {
            self.counters.missed += 1;
            return;
        }
        let (source, tag) = (self.interface.address, self.tag);
        let (length, count) = match transmission {
            Transmission::Data { message, words } => {
                let length = emit_data(source, tag, message, words, &mut self.frame);
                (length, &mut self.counters.data)
            }
            Transmission::Sync { round } => {
                (emit_round(source, tag, round, &mut self.frame), &mut self.counters.rounds)
            }
        };
        let sent = rustix::net::send(&self.socket, &self.frame[..length], SendFlags::DONTWAIT);
        self.link_up = sent != Err(Errno::NETDOWN);
        if sent.is_ok() {
            *count += 1;
            let error = MonoTime::now() - due;
            self.errors.note(error);
            self.counters.late += u64::from(error > self.late_limit);
        } else {
            self.counters.refused += 1;
        }
    }
}

fn realtime_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
