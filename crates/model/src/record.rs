//! What a run leaves behind: one [`Record`] per message end, and the [`RunLog`] around them.

use crate::observed::ClockObserved;
use crate::reservation::ReservationsObserved;
use crate::stations::StationsObserved;
use crate::system::{ChannelId, NodeId, NoiseId, TimeMode, TransportKind};
use crate::tcp::TcpObserved;
use crate::time::{NetTime, Span, SyncedTime};

/// What happened to one message at one end of a channel. All times but `network` are readings of
/// that end's own clock, except `capture`, which is always the talker's. Absent times are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When the value was captured, by the talker's clock. Joins the two ends' records.
    pub capture: Option<SyncedTime>,
    /// Talker: when the frame was handed to the emulated network; on a real one when it left, if
    /// the run had the kernel note that. Listener: when it arrived at the port.
    pub transfer: Option<SyncedTime>,
    /// Listener: when the message was there for the program to read. For a program that was
    /// waiting for it, when it continued; for one that came later, when it could have. Talker:
    /// when the kernel's queues got the frame, noted as `transfer` is.
    pub receive: Option<SyncedTime>,
    /// What `write_wait` or `read_wait` slept until.
    pub wake_target: Option<SyncedTime>,
    /// When the program continued after that sleep.
    pub wake: Option<SyncedTime>,
    /// True network time of the last instant recorded above; only an emulation knows it.
    pub network: Option<NetTime>,
    /// Number of the message: the talker's count, or the listener's rebuilt from the 8-bit
    /// sequence number and the gaps.
    pub sequence: u64,
    /// See [`flag`].
    pub flags: u32,
    /// Listener: messages missing between the one before and this one.
    pub gap: u32,
}

/// Bits of [`Record::flags`].
pub mod flag {
    /// Received later than capture + D.
    pub const LATE: u32 = 1;
    /// The same message as one received before.
    pub const DUPLICATE: u32 = 2;
    /// The talker's clock was not synchronised (AVTP `tu`).
    pub const UNCERTAIN: u32 = 4;
    /// The wake target had passed before the sleep began.
    pub const OVERSLEPT: u32 = 8;
    /// The message was there before the program asked for it.
    pub const WAITED: u32 = 16;
    /// The message was there, and the run ended before the program asked for it.
    pub const UNREAD: u32 = 32;
    /// The message was there, and the queue overflowed before the program came for it: it is lost.
    pub const OVERFLOWED: u32 = 128;
    /// The message was older than its channel's lifespan when the program came for it, which did
    /// not have it.
    pub const EXPIRED: u32 = 512;
    /// In a talker's record: the declared rate held the write, so the program waited in it.
    pub const HELD: u32 = 256;
    /// Not a new message but, again, the last one. Never in a record.
    pub const REPEATED: u32 = 64;
}

impl Record {
    /// The size of a record in memory shared between a program and the run, and in files.
    pub const SIZE: usize = 64;
    /// Stands for an absent time.
    const ABSENT: i64 = i64::MIN;

    /// The record as [`Record::SIZE`] little-endian octets: capture, transfer, receive, wake
    /// target, wake, network (i64 ns each, `i64::MIN` when absent), sequence u64, flags u32, gap
    /// u32. Real-time: bounded, allocates nothing.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let local = |t: Option<SyncedTime>| t.map_or(Self::ABSENT, SyncedTime::as_ns);
        let words = [
            local(self.capture),
            local(self.transfer),
            local(self.receive),
            local(self.wake_target),
            local(self.wake),
            self.network.map_or(Self::ABSENT, NetTime::as_ns),
        ];
        let mut bytes = [0; Self::SIZE];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes[48..56].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.flags.to_le_bytes());
        bytes[60..64].copy_from_slice(&self.gap.to_le_bytes());
        bytes
    }

    /// Reads back what [`Record::to_bytes`] wrote. Every pattern of bits is some record.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let word = |at: usize| {
            let octets = bytes[at * 8..at * 8 + 8].try_into().expect("eight octets");
            i64::from_le_bytes(octets)
        };
        let half =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four octets"));
        let present = |at: usize| Some(word(at)).filter(|ns| *ns != Self::ABSENT);
        Self {
            capture: present(0).map(SyncedTime::from_ns),
            transfer: present(1).map(SyncedTime::from_ns),
            receive: present(2).map(SyncedTime::from_ns),
            wake_target: present(3).map(SyncedTime::from_ns),
            wake: present(4).map(SyncedTime::from_ns),
            network: present(5).map(NetTime::from_ns),
            sequence: word(6) as u64,
            flags: half(56),
            gap: half(60),
        }
    }
}

/// Which end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The end that writes.
    Talker,
    /// An end that reads.
    Listener,
}

/// The records and counters of one channel endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointLog {
    /// Which channel.
    pub channel: ChannelId,
    /// Which endpoint.
    pub role: Role,
    /// On which host.
    pub node: NodeId,
    /// In the order in which the program handled the messages.
    pub records: Vec<Record>,
    /// Messages that came after the record memory was full.
    pub unrecorded: u64,
    /// Frames that were dropped because they were malformed or of another stream.
    pub malformed: u64,
}

/// How much of a noise source's traffic came through in one interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSample {
    /// The source.
    pub noise: NoiseId,
    /// Where the interval starts. It ends where the source's next sample starts.
    pub at: NetTime,
    /// Bits on the wire (frames with preamble and gap) that the source sent in the interval.
    pub offered_bits: u64,
    /// Bits on the wire that reached the destination in the interval.
    pub delivered_bits: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It continued for its whole duration.
    Complete,
    /// It was ended before, at `at`, because of `reason`; what was recorded until then is kept.
    Early {
        /// Network time of the end.
        at: NetTime,
        /// For a person; names the program at fault.
        reason: String,
    },
}

/// The network that carried a run's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// The network engine.
    #[default]
    Emulated,
    /// The description's network as namespaces, links and bridges of one machine's kernel.
    Namespaces {
        /// How frames got there.
        transport: TransportKind,
    },
    /// Interfaces of hosts: of one, or of several whose parts of the run were joined. Only their
    /// ends are known; what the others did is not.
    Interfaces {
        /// In the order of the hosts, one or more, each host once.
        parts: Vec<InterfacePart>,
        /// What the network clock read, in nanoseconds, at the instant that the run calls zero.
        epoch_ns: i64,
    },
}

/// A host's part of a run over interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfacePart {
    /// Which of the description's hosts.
    pub host: NodeId,
    /// The interface's name.
    pub name: String,
    /// How frames got there.
    pub transport: TransportKind,
    /// Whether the part was lost before it was over: what it did after its last record is not
    /// known.
    pub cut_off: bool,
    /// What readings showed of its clock, if somebody took them.
    pub ahead: Option<ClockAhead>,
    /// What was set on the machine for the time of the run, on one line; none if nothing was.
    pub tuned: Option<String>,
    /// What was measured of its clock during the run, in order of time; empty if nothing was.
    pub time_errors: Vec<TimeErrorSample>,
}

/// What programs on a machine measured of its clock last, at an instant of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeErrorSample {
    /// When it was asked for.
    pub at: NetTime,
    /// How far the clock that ptp4l keeps was ahead of its master's, as ptp4l measured it in a Sync
    /// since the sample before; none if it measured none.
    pub ptp4l: Option<Span>,
    /// How far CLOCK_TAI was ahead of the interface's hardware clock, which phc2sys keeps small;
    /// none without such a clock.
    pub phc2sys: Option<Span>,
}

/// By how much a machine's clock was ahead of the clock of the machine that ordered the run, as
/// readings over the connection between them showed before the run and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockAhead {
    /// At least; negative: it may have been behind.
    pub least: Span,
    /// At most, and not below the least.
    pub most: Span,
}

impl ClockAhead {
    /// What holds if one of two holds.
    pub fn either(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

impl Carrier {
    /// Whether the ends on a host took part in the run, and what they did is known.
    pub fn includes(&self, node: NodeId) -> bool {
        match self {
            Self::Emulated | Self::Namespaces { .. } => true,
            Self::Interfaces { parts, .. } => {
                parts.iter().any(|part| part.host == node && !part.cut_off)
            }
        }
    }
}

/// All that one run recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLog {
    /// The scenario's name, empty for the plain run settings.
    pub scenario: String,
    /// Where its randomness came from.
    pub seed: u64,
    /// What carried its frames.
    pub network: Carrier,
    /// In which time it ran; on networks other than the engine's it is real.
    pub time: TimeMode,
    /// How long talkers were allowed to write.
    pub duration: Span,
    /// Whether reservations were made.
    pub protected: bool,
    /// One per channel end, in the order of the channels, talker first, then its listeners.
    pub ends: Vec<EndpointLog>,
    /// In order of time, then source. Samples are equally spaced.
    pub load: Vec<LoadSample>,
    /// How it ended.
    pub ending: Ending,
    /// The engine in real time only: the most by which it ran behind the machine's clock.
    pub lag_max: Option<Span>,
    /// The clocks that a protocol steered in the engine, in the order of the nodes.
    pub clocks: Vec<ClockObserved>,
    /// Messages over TCP, in the order of the flows; empty if they took no part.
    pub tcp: Vec<TcpObserved>,
    /// How reservations went that hosts and bridges made by protocol; none if they made none.
    pub reservations: Option<ReservationsObserved>,
    /// What stations did that carried the channels; none if bridges did.
    pub stations: Option<StationsObserved>,
}
