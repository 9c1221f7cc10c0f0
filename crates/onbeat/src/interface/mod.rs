//! Channels on real interfaces: one transport per channel end, no thread between a task and the
//! kernel. The task that reads blocks in its own receive call; the task that writes sends itself.
//!
//! ```text
//! TalkerEndpoint, ListenerEndpoint (runtime) ── InterfaceIo ── PacketSocket, UdpSocket, XdpSocket,
//!                                        │                    or StationSocket ── station
//!                                        └ NetworkClock
//! ```

mod channel_io;
pub(crate) mod closer;
pub(crate) mod context;
mod cross_timestamp;
mod device;
mod filter;
mod gptp;
mod hardware_clock;
mod launch;
mod mrp_socket;
mod network_clock;
mod option;
mod packet;
pub(crate) mod precautions;
mod presence;
mod ptp_management;
mod ptp_priority;
mod ptp_survey;
mod ptp_sync;
mod sent_stamp;
mod service_socket;
mod socket;
pub mod srp;
mod stamping;
mod station;
mod synchronisation;
mod table;
mod udp;
mod xdp;

pub use channel_io::{InterfaceIo, Limits, MAX_SELECT, Timebase, select};
pub use context::{
    InterfaceContext, InterfaceSettings, MAX_CHANNELS, follow_schedule, launch_times, parameters_of,
};
pub use device::{Interface, ethtool};
pub use gptp::{GptpError, GptpNode};
pub use hardware_clock::hardware_apart;
pub use mrp_socket::{MRP_FRAME_MAX, MrpPdu, MrpSocket};
pub use network_clock::{ClockKind, ClockWatch, NetworkClock};
pub use option::set as set_option;
pub use packet::PacketSocket;
pub use packet::overhear_ptp;
pub use precautions::{Precautions, Taken};
pub use ptp_management::{GRANDMASTER, PortState, PtpStatus, ask_ptp4l};
pub use ptp_priority::{ptp4l_priority1, set_ptp4l_priority1};
pub use ptp_survey::{ClockIdentity, PtpPort, PtpSurvey, ask_sync, find_ptp4l, survey_ptp4l};
pub use ptp_sync::{SYNC_RECEIPT_TIMEOUT, SyncAge, SyncSeen, SyncWatch, look_again};
pub use service_socket::{ServiceConnection, ServiceSocket};
pub use stamping::begin_stamping;
pub use station::{
    ChannelCounters, InterfaceStation, ServedEndpoint, SlotErrors, StationDeliveries,
    StationDelivery, StationDoor, StationEndpoint, StationEndpointError, StationService,
    StationSocket, WireCounters,
};
pub use synchronisation::tai_offset;
pub use synchronisation::{Finding, Synchronisation};
pub use table::{ChannelTable, TABLE_EXTENSION, TABLE_OCTETS, TableEndpoint, WrongTable};
pub use udp::{IpVersion, PORT as UDP_PORT, UdpSocket, ipv4_group, ipv6_group};

pub use onbeat_model::system::TransportKind;
pub use xdp::{Mode, XdpSocket};

use onbeat_model::time::Span;
use onbeat_runtime::batch::AT_ONCE;
use onbeat_runtime::channel_io::{Framing, Reason};
use presence::{Anchor, EndLink};
use rustix::fd::{AsFd, BorrowedFd};
use sent_stamp::SentStamp;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;

/// How long a blocking receive waits before it looks whether it is still wanted.
pub const LOOK_AGAIN: Span = Span::from_ms(100);

/// How far from now an instant of the network clock is converted to the machine's: a year.
pub const HORIZON: Span = Span::from_s(365 * 24 * 3_600);

/// What to do beside sending and receiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceOptions {
    /// Frames carry no 802.1Q tag of ours: a VLAN interface adds it, or none is wanted.
    pub untagged: bool,
    /// The channel's talker is (also) on this host: its listeners here receive what leaves by the
    /// interface as well as what comes in. [`InterfaceContext::hear_own_host`] sets it by channel.
    pub own_host: bool,
    /// SO_BUSY_POLL: a blocking receive polls the driver first.
    pub busy_poll: bool,
    /// Note when the hardware, or else the kernel, had each frame.
    pub timestamps: bool,
    /// Have the kernel note when each frame gets into its queues, and when it leaves: the talker's
    /// records have both. Each write then makes two or three system calls before its message is
    /// captured. Not with AF_XDP, whose frames do not pass the kernel's queues.
    pub sent_stamps: bool,
    /// Let the kernel launch frames at their time (SO_TXTIME).
    pub launch_time: bool,
    /// Readers sleep to shortly before a message is due, then poll.
    pub follow_schedule: bool,
    /// SO_PRIORITY of frames per priority code point, instead of that code point.
    pub priorities: [Option<u32>; 8],
    /// AF_XDP: which receive queue.
    pub queue: u32,
    /// AF_XDP: how many readers, and how many writers, of this process share the queue at most; 0
    /// for 64, or with messages in fragments 16. This, the backlog and `longest` are as the first
    /// end has them that opens.
    pub ends: u32,
    /// AF_XDP: how many frames wait for a reader before further ones are lost; 0 for 16, or for
    /// four of the longest messages. Made a power of two, at most 1,024. Each takes 2 KiB of locked
    /// memory for every one of `ends`.
    pub backlog: u32,
    /// AF_XDP: how many frames the longest message has; 0 for one. A context sets it by the
    /// channels that are declared.
    pub longest: u32,
}

/// A frame that a transport received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How many octets of the buffer it fills.
    pub length: usize,
    /// What they are.
    pub framing: Framing,
    /// When it came, if that was asked for.
    pub stamp: Option<Stamp>,
}

/// When a frame came, by each clock that noted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds of the interface's own clock.
    pub hardware: Option<i64>,
    /// Nanoseconds of CLOCK_REALTIME.
    pub software: Option<i64>,
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub monotonic: Option<i64>,
}

/// What tells a talker that begins now from those before it; never 0.
pub fn instance() -> u8 {
    // The standard library's one source of randomness.
    let random = RandomState::new().build_hasher().finish();
    (random % 255) as u8 + 1
}

/// One channel end's way to an interface.
#[derive(Debug)]
pub enum Transport {
    /// AF_PACKET.
    Packet(PacketSocket),
    /// UDP.
    Udp(UdpSocket),
    /// AF_XDP.
    Xdp(Box<XdpSocket>),
    /// The host's station.
    Station(StationSocket),
}

impl Transport {
    /// Sends a tagged frame as the transport carries it; with `launch`, an instant of CLOCK_TAI in
    /// nanoseconds, so that it leaves then. Real-time: one system call, allocates nothing.
    #[inline]
    pub fn send(&mut self, frame: &[u8], launch: Option<i64>) -> io::Result<()> {
        match self {
            Self::Packet(socket) => socket.send(frame, launch),
            Self::Udp(socket) => socket.send(frame, launch),
            Self::Xdp(socket) => socket.send(frame, launch),
            Self::Station(socket) => socket.send(frame),
        }
    }

    /// How many frames one call of [`Transport::send_many`] takes.
    fn at_once(&self) -> usize {
        match self {
            // Notes are matched with messages one by one.
            _ if self.notes() => 1,
            Self::Packet(_) | Self::Udp(_) => AT_ONCE,
            // The ring does not say which of several a driver that is busy has refused.
            Self::Xdp(_) => 1,
            // It says of each when it had it.
            Self::Station(_) => 1,
        }
    }

    /// Sends tagged frames of `length` octets each, in order: how many the kernel took, and why not
    /// the next one. Real-time: one system call if it takes all, allocates nothing.
    fn send_many(&mut self, frames: &[u8], length: usize) -> (usize, io::Result<()>) {
        match self {
            Self::Packet(socket) => socket.send_many(frames, length),
            Self::Udp(socket) => socket.send_many(frames, length),
            Self::Xdp(_) | Self::Station(_) => {
                let sent = self.send(&frames[..length], None);
                (usize::from(sent.is_ok()), sent)
            }
        }
    }

    /// Takes a frame if there is one. Real-time: never blocks, allocates nothing.
    pub fn try_receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        match self {
            Self::Packet(socket) => socket.try_receive(into),
            Self::Udp(socket) => socket.try_receive(into),
            Self::Xdp(socket) => socket.try_receive(into),
            Self::Station(socket) => socket.try_receive(into),
        }
    }

    /// Waits for a frame for about [`LOOK_AGAIN`]; `None` also when a signal came. Real-time:
    /// blocks, allocates nothing.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        match self {
            Self::Packet(socket) => socket.receive(into),
            Self::Udp(socket) => socket.receive(into),
            Self::Xdp(socket) => socket.receive(into),
            Self::Station(socket) => socket.receive(into),
        }
    }

    /// Whether the kernel notes when frames leave.
    #[inline]
    fn notes(&self) -> bool {
        match self {
            Self::Packet(socket) => socket.notes(),
            Self::Udp(socket) => socket.notes(),
            Self::Xdp(_) | Self::Station(_) => false,
        }
    }

    /// Takes what the kernel noted of a frame that was sent. Real-time: a system call, if that is
    /// asked for.
    #[inline]
    fn sent_stamp(&self) -> Option<SentStamp> {
        match self {
            Self::Packet(socket) => socket.sent_stamp(),
            Self::Udp(socket) => socket.sent_stamp(),
            Self::Xdp(_) | Self::Station(_) => None,
        }
    }

    /// How many frames of the stream the kernel has dropped for `reason` since the last call. Where
    /// it may not count them some pass, to be counted as they are read. Real-time: loads.
    #[inline]
    pub fn dropped(&mut self, reason: Reason) -> u64 {
        match self {
            Self::Packet(socket) => socket.counted().map_or(0, |dropped| dropped.since(reason)),
            Self::Udp(socket) => socket.counted().map_or(0, |dropped| dropped.since(reason)),
            Self::Xdp(socket) => socket.dropped(reason),
            Self::Station(_) => 0,
        }
    }

    /// Whether there are frames to be counted. Real-time: loads.
    pub fn has_dropped(&mut self) -> bool {
        match self {
            Self::Packet(socket) => socket.counted().is_some_and(|dropped| dropped.is_news()),
            Self::Udp(socket) => socket.counted().is_some_and(|dropped| dropped.is_news()),
            Self::Xdp(socket) => socket.has_dropped(),
            Self::Station(_) => false,
        }
    }

    /// Gives what is sent from now on another priority code point.
    pub(super) fn prioritise(&self, pcp: u8, options: &InterfaceOptions) -> io::Result<()> {
        match self {
            Self::Packet(socket) => socket::prioritise(socket, pcp, options),
            Self::Udp(socket) => socket::prioritise(socket, pcp, options),
            // Frames go to one queue, or in slots.
            Self::Xdp(_) | Self::Station(_) => Ok(()),
        }
    }

    /// Whether the kernel launches frames at their time.
    pub fn launches(&self) -> bool {
        match self {
            Self::Packet(socket) => socket.launches(),
            Self::Udp(socket) => socket.launches(),
            Self::Xdp(socket) => socket.launches(),
            Self::Station(_) => false,
        }
    }

    /// What the end knows of its interface.
    pub(super) fn link(&self) -> Arc<EndLink> {
        match self {
            Self::Packet(socket) => Arc::clone(socket.link()),
            Self::Udp(socket) => Arc::clone(socket.link()),
            Self::Xdp(socket) => Arc::clone(socket.link()),
            Self::Station(_) => Arc::default(),
        }
    }

    /// What is attached to another interface; none of a station's, which has its own.
    pub(super) fn anchor(&self) -> Option<Anchor> {
        match self {
            Self::Packet(socket) => Some(Anchor::Socket(socket.socket())),
            Self::Udp(socket) => Some(Anchor::Socket(socket.socket())),
            Self::Xdp(socket) => Some(Anchor::Renewal(socket.renewal())),
            Self::Station(_) => None,
        }
    }

    /// What a read waits at: the descriptor, or the socket itself where the two differ.
    pub(super) fn waits_at(&self) -> BorrowedFd<'_> {
        match self {
            Self::Xdp(socket) => socket.socket(),
            _ => self.descriptor(),
        }
    }

    /// Readable when there may be a frame.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Packet(socket) => socket.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
            Self::Xdp(socket) => socket.as_fd(),
            Self::Station(socket) => socket.as_fd(),
        }
    }
}
