//! The one seam between a program and its surroundings: everything that tells the time, waits,
//! sends or receives goes through [`ChannelIo`], so that the same program runs in every engine.

use crate::integrity::StreamKeys;
use onbeat_model::record::Record;
use onbeat_model::time::{NetTime, SyncedTime};
use onbeat_model::units::MacAddress;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Why an operation did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// The run is over; the program should clean up and exit.
    #[error("the run is over")]
    Stopped,
    /// The coordinator or the network is gone, or violates the protocol.
    #[error("the connection to the run coordinator is lost")]
    Disconnected,
    /// The call came before `start`.
    #[error("start has not been called")]
    NotStarted,
    /// The interface or the station did not take the frame, or gives none.
    #[error("the interface, or the station on it, is down or gone: no frame was sent or received")]
    Network,
    /// The interface is down or not there now. The message counts as not written; writes work again
    /// when the interface is back.
    #[error("the interface is down or not there: the message was not sent")]
    LinkDown,
    /// The interface has no room for the frame now.
    #[error("the interface's queue is full: the frame was not sent")]
    QueueFull,
    /// The interface takes no frame that long.
    #[error("the message is too long for the interface's MTU: the frame was not sent")]
    TooLong,
    /// A child of the process that opened the end or the context uses it.
    #[error(
        "this process is a child of the one that opened its channels: open them after fork, or \
         use them in the parent only"
    )]
    Forked,
    /// The thread was not made known to the coordinator.
    #[error("the thread was not started through onbeat_thread_create")]
    UnknownThread,
    /// Messages in fragments have no room for what a meeting says.
    #[error("messages that are longer than a frame cannot be exchanged in a rendezvous")]
    InFragments,
    /// Both ends are of one channel.
    #[error("a rendezvous needs two channels in opposite directions: these ends are of one")]
    OneChannel,
    /// The end's limit came before what was waited for.
    #[error("the end's limit came before what was waited for")]
    TimedOut,
}

/// An instant, on the endpoint's own clock and, where an emulation knows it, in true network time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant {
    /// What the host's copy of the network clock reads.
    pub local: SyncedTime,
    /// True network time.
    pub network: Option<NetTime>,
}

impl Instant {
    /// By what it is before or after others of its endpoint: network time, which never goes
    /// backwards, or else the clock as it reads.
    pub fn order(&self) -> NetTime {
        self.network.unwrap_or(NetTime::from_ns(self.local.as_ns()))
    }
}

/// The kind of octets that an endpoint received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// An Ethernet frame, tagged or not, without its FCS.
    Ethernet,
    /// A data unit alone, as a datagram carries it.
    Datagram {
        /// Its sender.
        from: SocketAddr,
        /// The number of the datagram (IEEE 1722-2016 Annex J).
        number: u32,
    },
}

/// Where a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A station.
    Station(MacAddress),
    /// A socket.
    Socket(SocketAddr),
}

impl Source {
    /// Whether both are of one host. A program that is started again sends from another socket.
    pub fn is_host_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Station(a), Self::Station(b)) => a == b,
            (Self::Socket(a), Self::Socket(b)) => a.ip() == b.ip(),
            _ => false,
        }
    }

    /// As 24 octets: a kind (1 station, 2 IPv4, 3 IPv6; 0 is none), a zero, the port, the address.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut octets = [0; Self::SIZE];
        let (kind, port) = match self {
            Self::Station(address) => {
                octets[4..10].copy_from_slice(&address.0);
                (1, 0)
            }
            Self::Socket(socket) => {
                let kind = match socket.ip() {
                    IpAddr::V4(ip) => {
                        octets[4..8].copy_from_slice(&ip.octets());
                        2
                    }
                    IpAddr::V6(ip) => {
                        octets[4..20].copy_from_slice(&ip.octets());
                        3
                    }
                };
                (kind, socket.port())
            }
        };
        octets[0] = kind;
        octets[2..4].copy_from_slice(&port.to_be_bytes());
        octets
    }

    /// Octets of [`Source::to_bytes`].
    pub const SIZE: usize = 24;

    /// Reads back what [`Source::to_bytes`] wrote; `None` of anything else.
    pub fn from_bytes(octets: &[u8; Self::SIZE]) -> Option<Self> {
        let port = u16::from_be_bytes([octets[2], octets[3]]);
        let address = |length: usize| &octets[4..4 + length];
        let ip: IpAddr = match octets[0] {
            1 => return Some(Self::Station(MacAddress(address(6).try_into().ok()?))),
            2 => <[u8; 4]>::try_from(address(4)).ok()?.into(),
            3 => <[u8; 16]>::try_from(address(16)).ok()?.into(),
            _ => return None,
        };
        Some(Self::Socket(SocketAddr::new(ip, port)))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Station(address) => address.fmt(f),
            Self::Socket(socket) => socket.fmt(f),
        }
    }
}

/// A frame that an endpoint received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its length.
    pub length: usize,
    /// What it is.
    pub framing: Framing,
    /// When its last octet was at the host's port.
    pub arrived: SyncedTime,
    /// Whether that is known: it is now otherwise.
    pub stamped: bool,
    /// When it was there for the program to read: now, for a program that was waiting in this call.
    pub ready: Instant,
    /// It was there before the program made this call.
    pub waited: bool,
}

/// How long a receive waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Not at all.
    None,
    /// Until this instant.
    Until(SyncedTime),
    /// For ever.
    Endless,
}

/// When a reader expects its next message, by its endpoint's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Not before this instant.
    pub open: SyncedTime,
    /// Hardly after this one.
    pub close: SyncedTime,
}

/// What the network has reserved for what a talker sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The talker sends without a reservation of its own.
    Unneeded,
    /// Bandwidth is reserved for frames with this tag.
    Held {
        /// The VLAN identifier.
        vlan: u16,
        /// The priority code point.
        pcp: u8,
    },
    /// There is no listener for whom bandwidth is reserved.
    Missing,
}

/// What the kernel noted of a frame on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitStamp {
    /// The number of its message.
    pub sequence: u64,
    /// Where it was.
    pub point: TransmitPoint,
    /// When.
    pub at: SyncedTime,
}

/// A point on a frame's way out of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitPoint {
    /// Before the interface's queueing discipline.
    Queue,
    /// At the interface, whose driver took the frame.
    Interface,
}

/// The clock and the network of a channel endpoint.
pub trait ChannelIo {
    /// Now.
    fn now(&mut self) -> Result<Instant, ChannelError>;
    /// Whether the clock is not known to be synchronised.
    fn uncertain(&self) -> bool;
    /// Waits until the clock reads `target` or later; returns when it continued.
    fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError>;
    /// Whether at `now` the program may wait no more at this end.
    fn is_over(&self, _now: SyncedTime) -> bool {
        false
    }
    /// Whether a message that is captured at `at` may be written: [`ChannelError::Stopped`] when
    /// talkers may no longer write then. Asked before anything is changed, so that a write which is
    /// refused has no effect.
    fn may_write(&self, _at: SyncedTime) -> Result<(), ChannelError> {
        Ok(())
    }
    /// Now, and [`ChannelIo::uncertain`], for a message that is captured now: refused as
    /// [`ChannelIo::may_write`] does. All that a write asks of the clock, in one reading.
    #[inline]
    fn begin_write(&mut self) -> Result<(Instant, bool), ChannelError> {
        let now = self.now()?;
        self.may_write(now.local)?;
        Ok((now, self.uncertain()))
    }
    /// What is reserved for a talker now. Asked before each write. Real-time: a load.
    #[inline]
    fn grant(&mut self) -> Grant {
        Grant::Unneeded
    }
    /// Waits until what is reserved for a talker may have changed, at most until the clock reads
    /// `until`.
    fn await_grant(&mut self, _until: SyncedTime) -> Result<(), ChannelError> {
        Ok(())
    }
    /// Hands a frame to the network.
    fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError>;
    /// How many frames one call of [`ChannelIo::send_many`] takes at most; 1 where it would be
    /// nothing else than that many of [`ChannelIo::send`].
    fn at_once(&self) -> usize {
        1
    }
    /// Hands frames of `length` octets each, at most [`ChannelIo::at_once`], to the network in
    /// order: how many it took, and why not the next one, if not all.
    fn send_many(&mut self, frames: &[u8], length: usize) -> (usize, Result<(), ChannelError>) {
        for (taken, frame) in frames.chunks_exact(length).enumerate() {
            if let Err(fault) = self.send(frame) {
                return (taken, Err(fault));
            }
        }
        (frames.len() / length, Ok(()))
    }
    /// Hands a frame to the network so that it leaves at `at`: by the kernel's launch time where
    /// there is one, else after sleeping until then.
    fn launch(&mut self, frame: &[u8], at: SyncedTime) -> Result<(), ChannelError> {
        self.sleep_until(at)?;
        self.send(frame)
    }
    /// When the frame sent last was handed over, where that is known here.
    fn handed_over(&self) -> Option<SyncedTime> {
        None
    }
    /// What is noted of a frame that was sent, if that was asked for; `last` is the number of the
    /// message sent last. Asked before each write, so that no stamp costs the message it is of.
    /// Real-time: one system call, if it was asked for.
    fn transmitted(&mut self, _last: u64) -> Option<TransmitStamp> {
        None
    }
    /// How many frames of the end's stream the way to it has dropped since the last call because
    /// of `reason`. They never reach [`ChannelIo::receive`].
    fn dropped(&mut self, _reason: Reason) -> u64 {
        0
    }
    /// The stream's keys, if they have changed since the end was opened or this was asked. Asked
    /// before each message of an authenticated channel: must not block.
    fn new_keys(&mut self) -> Option<StreamKeys> {
        None
    }
    /// Waits for a frame; `None` when there is none within `patience`, and sooner when
    /// [`ChannelIo::dropped`] has something to tell. When one is expected in a `window`, an
    /// implementation may use what it knows to have it sooner.
    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
        window: Option<Window>,
    ) -> Result<Option<Received>, ChannelError>;
}

/// Channel I/O whose waits end with [`ChannelError::TimedOut`] at a limit that the program sets.
#[derive(Debug)]
pub struct Limited<P> {
    io: P,
    limit: SyncedTime,
}

impl<P> Limited<P> {
    /// Without a limit as yet.
    pub fn new(io: P) -> Self {
        Self { io, limit: SyncedTime::MAX }
    }

    /// The I/O inside.
    pub fn inner(&self) -> &P {
        &self.io
    }

    /// From now on no wait lasts longer than until the clock reads `limit`.
    pub fn limit(&mut self, limit: SyncedTime) {
        self.limit = limit;
    }
}

impl<P: ChannelIo> ChannelIo for Limited<P> {
    #[inline]
    fn now(&mut self) -> Result<Instant, ChannelError> {
        self.io.now()
    }

    #[inline]
    fn uncertain(&self) -> bool {
        self.io.uncertain()
    }

    fn sleep_until(&mut self, target: SyncedTime) -> Result<Instant, ChannelError> {
        if target <= self.limit {
            return self.io.sleep_until(target);
        }
        self.io.sleep_until(self.limit)?;
        Err(ChannelError::TimedOut)
    }

    fn is_over(&self, now: SyncedTime) -> bool {
        now > self.limit
    }

    #[inline]
    fn may_write(&self, at: SyncedTime) -> Result<(), ChannelError> {
        self.io.may_write(at)
    }

    #[inline]
    fn begin_write(&mut self) -> Result<(Instant, bool), ChannelError> {
        self.io.begin_write()
    }

    #[inline]
    fn grant(&mut self) -> Grant {
        self.io.grant()
    }

    fn await_grant(&mut self, until: SyncedTime) -> Result<(), ChannelError> {
        let until = until.min(self.limit);
        self.io.await_grant(until)?;
        let over = self.limit < SyncedTime::MAX && self.io.now()?.local >= self.limit;
        // What came in time counts.
        if over && self.io.grant() == Grant::Missing { Err(ChannelError::TimedOut) } else { Ok(()) }
    }

    #[inline]
    fn handed_over(&self) -> Option<SyncedTime> {
        self.io.handed_over()
    }

    #[inline]
    fn transmitted(&mut self, last: u64) -> Option<TransmitStamp> {
        self.io.transmitted(last)
    }

    #[inline]
    fn dropped(&mut self, reason: Reason) -> u64 {
        self.io.dropped(reason)
    }

    #[inline]
    fn new_keys(&mut self) -> Option<StreamKeys> {
        self.io.new_keys()
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
        self.io.send(frame)
    }

    fn at_once(&self) -> usize {
        self.io.at_once()
    }

    fn send_many(&mut self, frames: &[u8], length: usize) -> (usize, Result<(), ChannelError>) {
        self.io.send_many(frames, length)
    }

    fn launch(&mut self, frame: &[u8], at: SyncedTime) -> Result<(), ChannelError> {
        self.io.launch(frame, at)
    }

    fn receive(
        &mut self,
        into: &mut [u8],
        patience: Timeout,
        window: Option<Window>,
    ) -> Result<Option<Received>, ChannelError> {
        let beyond = match patience {
            Timeout::None => false,
            Timeout::Until(until) => until > self.limit,
            Timeout::Endless => self.limit < SyncedTime::MAX,
        };
        if !beyond {
            return self.io.receive(into, patience, window);
        }
        match self.io.receive(into, Timeout::Until(self.limit), window)? {
            None if self.io.now()?.local >= self.limit => Err(ChannelError::TimedOut),
            received => Ok(received),
        }
    }
}

/// Why a frame never reaches the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is not of a channel's shape: truncated, of another type, version or length.
    Shape,
    /// It belongs to another stream or goes to another address.
    Stream,
    /// Its message has another size.
    Size,
    /// It is another talker's than the one that the end reads from.
    Talker,
    /// It says that it was captured later than now, by more than clocks may differ.
    Future,
    /// Its CRC does not fit what it carries.
    Damaged,
    /// Its tag does not fit what it carries, or it was repeated after 4.29 s or more: it was not
    /// made with the key for this time.
    NotAuthentic,
    /// It names a key that the end does not have.
    UnknownKey,
    /// It is authentic, and was accepted before.
    Replayed,
    /// It is authentic, and was captured before the end was opened, or by an earlier start of the
    /// talker than the one that is read.
    Stale,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 10;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Shape,
        Self::Stream,
        Self::Size,
        Self::Talker,
        Self::Future,
        Self::Damaged,
        Self::NotAuthentic,
        Self::UnknownKey,
        Self::Replayed,
        Self::Stale,
    ];
}

/// Where an end's records and counts go: memory of a fixed size, full when it is full.
pub trait Log {
    /// Adds a record.
    fn push(&mut self, record: &Record);
    /// Replaces the record that was added last.
    fn amend(&mut self, record: &Record);
    /// Completes the record of an earlier message, if it is there.
    fn transmitted(&mut self, _stamp: &TransmitStamp) {}
    /// Counts frames that were rejected.
    fn reject(&mut self, reason: Reason, count: u64);
    /// Keeps where another talker's messages come from.
    fn other_talker(&mut self, from: &Source);
    /// Counts a message that the declared rate did not allow at once.
    fn rate_exceeded(&mut self);
}
