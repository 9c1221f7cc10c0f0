//! What programs and their coordinator say to each other over a sequenced-packet socket, one
//! message a packet, little endian. Both sides run on one machine, but what arrives is hostile
//! until parsed: decoding is total.

use crate::interface::{InterfaceOptions, TransportKind};
use onbeat_model::integrity::Integrity;
use onbeat_model::record::Role;
use onbeat_model::time::{ClockError, ClockStep, NetTime, Span, SyncedTime};
use onbeat_model::units::{MacAddress, Octets, StreamId};
use onbeat_runtime::channel_io::Timeout;
use onbeat_runtime::launch::LaunchTimes;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::MAX_FRAME;

/// The environment variable that tells a program its coordinator: the number of the descriptor that
/// it was started with, `:`, and the inode of the socket that this must be.
pub const ENVIRONMENT: &str = "ONBEAT_COORDINATOR";
/// The old name of that variable: programs are given both, and read the new one first. So programs
/// and runs meet where one of the two is of an older release.
pub const OLD_ENVIRONMENT: &str = "ONBEAT_FABRIC";
/// Version of this protocol; a program of another is refused at its first message.
pub const VERSION: u16 = 17;
/// The oldest version that is understood: the one in which ends have lifespans.
pub const OLDEST_VERSION: u16 = 17;
/// The longest packet.
pub const MAX_PACKET: usize = 64 + MAX_FRAME;
/// The longest text in a message.
pub const MAX_TEXT: usize = 512;

/// From a thread of a program to the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The only message on the socket that a program was started with, and the version of this
    /// protocol, which must be [`VERSION`]. The answer is the ticket of its main thread.
    Hello(u16),
    /// The first message of a thread, as `gettid` numbers it, on the socket that came with its
    /// ticket. The answer comes when it may continue.
    Begin(u32),
    /// The same of a thread that uses the memory that came with its ticket: all other packets are
    /// in it, but answers with descriptors. Its answer to such a one is empty, and it is followed
    /// on the socket.
    BeginInMemory(u32),
    /// Opens an end of a channel.
    Open {
        /// Which end.
        role: Role,
        /// The size that the program believes its messages have.
        size: Octets,
        /// Which channel.
        name: &'a str,
    },
    /// Set-up is done; answered at the common start.
    Start,
    /// Sleeps until the node's clock reads this.
    Sleep(SyncedTime),
    /// Computes. The answer is [`Body::Done`], or [`Body::Empty`] when it was cut short.
    Work(Work),
    /// Sends a frame on an end. Not answered.
    Send(u32, &'a [u8]),
    /// Sends a frame on an end when the node's clock reads this. Answered when the thread, which
    /// sleeps until then, has woken.
    Launch(u32, SyncedTime, &'a [u8]),
    /// Receives a frame on an end.
    Receive(u32, Timeout),
    /// Has received the oldest frame of an end, which was offered, instead of asking for it. Not
    /// answered.
    Took(u32, Timeout),
    /// Waits until one of these ends has a frame.
    Select(EndpointNumbers<'a>, Timeout),
    /// Closes an end. Not answered.
    Close(u32),
    /// A thread is about to be created.
    Announce,
    /// Waits until a thread has ended.
    Join(u32),
    /// Waits until a thread of the same program wakes those that wait for this key.
    Park {
        /// For what.
        key: u64,
        /// How long.
        patience: Timeout,
        /// The thread that holds it, as `gettid` numbers it; 0: unknown.
        holder: u32,
    },
    /// Wakes the threads of the program that wait for this key. Not answered.
    Unpark(u64),
    /// There is no room for more requests that are not answered; answered at once, without new
    /// offers.
    Yield,
    /// The thread ends.
    Bye,
}

/// What a thread computes, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// For how long, with a processor to itself.
    pub span: Span,
    /// When the node's clock reads this it is given up.
    pub until: SyncedTime,
    /// 1 to 99, the greater the more urgent, where processors are shared; 0: its program's.
    pub priority: u8,
    /// An absolute deadline instead, which comes before all priorities; [`SyncedTime::MAX`]: none.
    pub deadline: SyncedTime,
}

impl Work {
    /// So long, as urgent as its program, and never given up.
    pub const fn of(span: Span) -> Self {
        Self { span, until: SyncedTime::MAX, priority: 0, deadline: SyncedTime::MAX }
    }
}

/// The most ends that one request waits for.
pub const MAX_SELECT: usize = 256;

/// The numbers of endpoints, as a packet carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointNumbers<'a>(&'a [u8]);

impl<'a> EndpointNumbers<'a> {
    /// Endpoints from their numbers, each as four little-endian octets; `None` for more than
    /// [`MAX_SELECT`].
    pub fn new(octets: &'a [u8]) -> Option<Self> {
        let whole = octets.len().is_multiple_of(4) && octets.len() <= 4 * MAX_SELECT;
        whole.then_some(Self(octets))
    }

    /// Their numbers.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        self.0.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number))
    }
}

/// Which interface an end uses instead of the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// How frames get there.
    pub transport: TransportKind,
    /// What else to do. Priorities do not come along.
    pub options: InterfaceOptions,
    /// Its name.
    pub interface: &'a str,
    /// Whether the host's station carries the channel: the end's socket to it comes with the
    /// packet.
    pub by_station: bool,
    /// Whether others than this run may be on the network.
    pub is_shared: bool,
}

/// Beside the transport: the talker is on this host.
const OWN_HOST: u8 = 0x80;

impl Attachment<'_> {
    fn kind(&self) -> u8 {
        let kind = match self.transport {
            TransportKind::Packet => 1,
            TransportKind::Xdp => 2,
            TransportKind::Udp4 => 3,
            TransportKind::Udp6 => 4,
        };
        kind | if self.options.own_host { OWN_HOST } else { 0 }
    }

    fn bits(&self) -> u8 {
        let o = &self.options;
        let bits = [
            o.untagged,
            o.busy_poll,
            o.timestamps,
            o.launch_time,
            o.follow_schedule,
            self.by_station,
            self.is_shared,
            o.sent_stamps,
        ];
        bits.iter().enumerate().fold(0, |all, (at, bit)| all | u8::from(*bit) << at)
    }
}

/// From the coordinator to a thread. `local` and `network` are the time of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// What the thread's node's clock reads.
    pub local: SyncedTime,
    /// True network time.
    pub network: NetTime,
    /// The answer.
    pub body: Body<'a>,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Done.
    Done,
    /// The request cannot be granted, for this reason.
    Refused(&'a str),
    /// The end is open; its record memory, and in real time its socket, come with the packet.
    Opened {
        /// Names the end in later requests.
        end: u32,
        /// How often this end of the channel was opened, with this time.
        start: u32,
        /// When its last message was captured before, by that clock.
        last: Option<SyncedTime>,
        /// Of a listener, if the description says so: the longest time between two messages.
        deadline: Option<Span>,
        /// Of a listener, if the description says so: when messages expire.
        lifespan: Option<Span>,
        /// How many records its memory holds.
        capacity: u32,
        /// The channel, as the description has it.
        parameters: ChannelParameters,
        /// The interface, on a real network. Its network namespace comes with the packet, if it
        /// is not the program's.
        attachment: Option<Attachment<'a>>,
    },
    /// The run begins.
    Started(Start),
    /// A frame that was received.
    Frame {
        /// When it arrived at the host's port.
        arrived: SyncedTime,
        /// When it was there to be read, by the node's clock.
        ready_local: SyncedTime,
        /// The same in true time.
        ready: NetTime,
        /// Its octets.
        octets: &'a [u8],
    },
    /// Nothing was received in time.
    Empty,
    /// The end at this position of those asked for has a frame.
    Ready(u32),
    /// The ticket of a thread; its socket comes with the packet, and in virtual time its memory.
    Ticket(u32),
    /// The run is over.
    Stopped,
}

/// What tells a program the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// the coordinator's answers.
    Virtual,
    /// CLOCK_MONOTONIC, which read so many nanoseconds at the network's epoch.
    Machine(i64),
    /// The network clock, which read so many nanoseconds at the run's epoch.
    Network(i64),
}

/// What a program needs to know of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// What tells the time.
    pub base: Base,
    /// The error of the node's clock.
    pub clock: ClockError,
    /// Talkers may write before this instant.
    pub write_until: NetTime,
    /// Everything stops at this instant.
    pub stop: NetTime,
}

/// A packet that is none of the above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message that the run protocol does not have")]
pub struct ProtocolViolation;

/// Builds a packet in a caller's buffer.
struct Writer<'a> {
    into: &'a mut [u8],
    length: usize,
}
impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) -> &mut Self {
        self.into[self.length..self.length + octets.len()].copy_from_slice(octets);
        self.length += octets.len();
        self
    }
    fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }
    fn i64(&mut self, value: i64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }
    fn patience(&mut self, patience: Timeout) -> &mut Self {
        let (kind, until) = match patience {
            Timeout::None => (0, 0),
            Timeout::Until(until) => (1, until.as_ns()),
            Timeout::Endless => (2, 0),
        };
        self.u8(kind).i64(until)
    }
    /// Octets that run to the end of the packet.
    fn rest(&mut self, octets: &[u8]) -> &mut Self {
        self.put(octets)
    }
}

/// Takes a packet apart.
struct Reader<'a>(&'a [u8]);
impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ProtocolViolation> {
        let (octets, rest) = self.0.split_first_chunk::<N>().ok_or(ProtocolViolation)?;
        self.0 = rest;
        Ok(*octets)
    }
    fn u8(&mut self) -> Result<u8, ProtocolViolation> {
        Ok(self.take::<1>()?[0])
    }
    fn u16(&mut self) -> Result<u16, ProtocolViolation> {
        Ok(u16::from_le_bytes(self.take()?))
    }
    fn u32(&mut self) -> Result<u32, ProtocolViolation> {
        Ok(u32::from_le_bytes(self.take()?))
    }
    fn i64(&mut self) -> Result<i64, ProtocolViolation> {
        Ok(i64::from_le_bytes(self.take()?))
    }
    fn patience(&mut self) -> Result<Timeout, ProtocolViolation> {
        let (kind, until) = (self.u8()?, self.i64()?);
        match kind {
            0 => Ok(Timeout::None),
            1 => Ok(Timeout::Until(SyncedTime::from_ns(until))),
            2 => Ok(Timeout::Endless),
            _ => Err(ProtocolViolation),
        }
    }
    fn bit(&mut self) -> Result<bool, ProtocolViolation> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ProtocolViolation),
        }
    }
    fn integrity(&mut self) -> Result<Integrity, ProtocolViolation> {
        match self.u8()? {
            0 => Ok(Integrity::None),
            1 => Ok(Integrity::Crc),
            2 => Ok(Integrity::Authenticated),
            _ => Err(ProtocolViolation),
        }
    }
    fn launch(&mut self) -> Result<Option<LaunchTimes>, ProtocolViolation> {
        let there = self.bit()?;
        let [at, lead] = [self.i64()?, self.i64()?].map(Span::from_ns);
        Ok(there.then_some(LaunchTimes { at, lead }))
    }
    fn parameters(&mut self) -> Result<ChannelParameters, ProtocolViolation> {
        Ok(ChannelParameters {
            destination: MacAddress(self.take()?),
            source: MacAddress(self.take()?),
            stream_id: StreamId(self.i64()? as u64),
            vlan: self.u16()?,
            pcp: self.u8()?,
            replicated: self.bit()?,
            size: Octets::new(self.u32()?),
            integrity: self.integrity()?,
            talker_address: Some(MacAddress(self.take()?)).filter(|a| *a != MacAddress::default()),
            launch: self.launch()?,
            interval: Span::from_ns(self.i64()?),
            tolerance: Span::from_ns(self.i64()?),
            catch_up: Span::from_ns(self.i64()?),
            fixed_delay: Span::from_ns(self.i64()?),
            clock_error: Span::from_ns(self.i64()?),
            epoch: self.i64()?,
        })
    }
    fn attachment(&mut self) -> Result<Option<Attachment<'a>>, ProtocolViolation> {
        let (kind, bits, queue) = (self.u8()?, self.u8()?, self.u32()?);
        let interface = self.text()?;
        let transport = match kind & !OWN_HOST {
            0 => return Ok(None),
            1 => TransportKind::Packet,
            2 => TransportKind::Xdp,
            3 => TransportKind::Udp4,
            4 => TransportKind::Udp6,
            _ => return Err(ProtocolViolation),
        };
        let bit = |at: u8| bits & (1 << at) != 0;
        let options = InterfaceOptions {
            untagged: bit(0),
            busy_poll: bit(1),
            timestamps: bit(2),
            launch_time: bit(3),
            follow_schedule: bit(4),
            // What programs do not know that were linked with an earlier library.
            sent_stamps: bit(7),
            own_host: kind & OWN_HOST != 0,
            queue,
            ..InterfaceOptions::default()
        };
        let [by_station, is_shared] = [bit(5), bit(6)];
        Ok(Some(Attachment { transport, options, interface, by_station, is_shared }))
    }
    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
    fn text(&mut self) -> Result<&'a str, ProtocolViolation> {
        let octets = self.rest();
        if octets.len() > MAX_TEXT {
            return Err(ProtocolViolation);
        }
        std::str::from_utf8(octets).map_err(|_| ProtocolViolation)
    }
    fn end<T>(self, value: T) -> Result<T, ProtocolViolation> {
        if self.0.is_empty() { Ok(value) } else { Err(ProtocolViolation) }
    }
}

/// Cuts a text to what fits in a message, at a character.
fn clip(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl<'a> Request<'a> {
    /// Writes the packet; returns its length. Real-time: bounded, allocates nothing.
    ///
    /// # Panics
    /// When a frame is longer than [`MAX_FRAME`].
    pub fn encode(&self, into: &mut [u8; MAX_PACKET]) -> usize {
        let mut to = Writer { into, length: 0 };
        match *self {
            Self::Hello(version) => to.u8(1).put(&version.to_le_bytes()),
            Self::Open { role, size, name } => to
                .u8(2)
                .u8(u8::from(role == Role::Talker))
                .u32(size.get())
                .rest(clip(name).as_bytes()),
            Self::Start => to.u8(3),
            Self::Sleep(until) => to.u8(4).i64(until.as_ns()),
            Self::Work(work) => to
                .u8(5)
                .i64(work.span.as_ns())
                .i64(work.until.as_ns())
                .u8(work.priority)
                .i64(work.deadline.as_ns()),
            Self::Send(end, frame) => to.u8(6).u32(end).rest(frame),
            Self::Launch(end, at, frame) => to.u8(16).u32(end).i64(at.as_ns()).rest(frame),
            Self::Receive(end, patience) => to.u8(7).u32(end).patience(patience),
            Self::Select(ends, patience) => to.u8(11).patience(patience).rest(ends.0),
            Self::Close(end) => to.u8(14).u32(end),
            Self::Announce => to.u8(8),
            Self::Join(ticket) => to.u8(9).u32(ticket),
            Self::Park { key, patience, holder } => {
                to.u8(12).i64(key as i64).patience(patience).u32(holder)
            }
            Self::Unpark(key) => to.u8(13).i64(key as i64),
            Self::Bye => to.u8(10),
            Self::Begin(tid) => to.u8(15).u32(tid),
            Self::BeginInMemory(tid) => to.u8(17).u32(tid),
            Self::Yield => to.u8(18),
            Self::Took(end, patience) => to.u8(19).u32(end).patience(patience),
        };
        to.length
    }

    /// Reads a packet.
    pub fn decode(packet: &'a [u8]) -> Result<Self, ProtocolViolation> {
        let mut from = Reader(packet);
        let request = match from.u8()? {
            1 => Self::Hello(from.u16()?),
            2 => {
                let role = if from.u8()? == 1 { Role::Talker } else { Role::Listener };
                Self::Open { role, size: Octets::new(from.u32()?), name: from.text()? }
            }
            3 => Self::Start,
            4 => Self::Sleep(SyncedTime::from_ns(from.i64()?)),
            5 => Self::Work(Work {
                span: Span::from_ns(from.i64()?),
                until: SyncedTime::from_ns(from.i64()?),
                priority: from.u8()?,
                deadline: SyncedTime::from_ns(from.i64()?),
            }),
            6 => Self::Send(from.u32()?, from.rest()),
            7 => {
                let end = from.u32()?;
                Self::Receive(end, from.patience()?)
            }
            8 => Self::Announce,
            9 => Self::Join(from.u32()?),
            10 => Self::Bye,
            11 => {
                let patience = from.patience()?;
                Self::Select(EndpointNumbers::new(from.rest()).ok_or(ProtocolViolation)?, patience)
            }
            12 => {
                let key = from.i64()? as u64;
                Self::Park { key, patience: from.patience()?, holder: from.u32()? }
            }
            13 => Self::Unpark(from.i64()? as u64),
            14 => Self::Close(from.u32()?),
            15 => Self::Begin(from.u32()?),
            17 => Self::BeginInMemory(from.u32()?),
            18 => Self::Yield,
            19 => {
                let end = from.u32()?;
                Self::Took(end, from.patience()?)
            }
            16 => Self::Launch(from.u32()?, SyncedTime::from_ns(from.i64()?), from.rest()),
            _ => return Err(ProtocolViolation),
        };
        from.end(request)
    }
}

impl<'a> Reply<'a> {
    /// Writes the packet; returns its length.
    pub fn encode(&self, into: &mut [u8; MAX_PACKET]) -> usize {
        let mut to = Writer { into, length: 0 };
        to.i64(self.local.as_ns()).i64(self.network.as_ns());
        match self.body {
            Body::Done => to.u8(1),
            Body::Refused(text) => to.u8(2).rest(clip(text).as_bytes()),
            Body::Opened {
                end,
                start,
                last,
                deadline,
                lifespan,
                capacity,
                parameters: p,
                attachment,
            } => {
                let last = last.map_or(i64::MIN, SyncedTime::as_ns);
                to.u8(3)
                    .u32(end)
                    .u32(start)
                    .i64(last)
                    .i64(deadline.map_or(0, Span::as_ns))
                    .i64(lifespan.map_or(0, Span::as_ns))
                    .u32(capacity)
                    .put(&p.destination.0)
                    .put(&p.source.0);
                to.i64(p.stream_id.0 as i64).put(&p.vlan.to_le_bytes()).u8(p.pcp);
                to.u8(u8::from(p.replicated));
                to.u32(p.size.get()).u8(p.integrity as u8);
                to.put(&p.talker_address.unwrap_or_default().0);
                let launch = p.launch.map_or([0; 2], |l| [l.at, l.lead].map(Span::as_ns));
                to.u8(u8::from(p.launch.is_some())).i64(launch[0]).i64(launch[1]);
                to.i64(p.interval.as_ns()).i64(p.tolerance.as_ns()).i64(p.catch_up.as_ns());
                to.i64(p.fixed_delay.as_ns()).i64(p.clock_error.as_ns()).i64(p.epoch);
                match attachment {
                    None => to.u8(0).u8(0).u32(0),
                    Some(a) => {
                        to.u8(a.kind()).u8(a.bits()).u32(a.options.queue);
                        to.rest(clip(a.interface).as_bytes())
                    }
                }
            }
            Body::Started(start) => {
                let (kind, at) = match start.base {
                    Base::Virtual => (0, 0),
                    Base::Machine(at) => (1, at),
                    Base::Network(at) => (2, at),
                };
                to.u8(4).u8(kind).i64(at);
                to.i64(start.clock.offset.as_ns()).i64(i64::from(start.clock.drift_ppb));
                to.i64(start.clock.wander.as_ns()).i64(start.clock.wander_period.as_ns());
                let step = start.clock.step;
                to.i64(step.by.as_ns()).i64(step.from.as_ns()).i64(step.until.as_ns());
                to.i64(start.write_until.as_ns()).i64(start.stop.as_ns())
            }
            Body::Frame { arrived, ready_local, ready, octets } => {
                to.u8(5).i64(arrived.as_ns()).i64(ready_local.as_ns());
                to.i64(ready.as_ns()).rest(octets)
            }
            Body::Empty => to.u8(6),
            Body::Ready(position) => to.u8(9).u32(position),
            Body::Ticket(ticket) => to.u8(7).u32(ticket),
            Body::Stopped => to.u8(8),
        };
        to.length
    }

    /// Reads a packet. Real-time: bounded, allocates nothing.
    pub fn decode(packet: &'a [u8]) -> Result<Self, ProtocolViolation> {
        let mut from = Reader(packet);
        let local = SyncedTime::from_ns(from.i64()?);
        let network = NetTime::from_ns(from.i64()?);
        let body = match from.u8()? {
            1 => Body::Done,
            2 => Body::Refused(from.text()?),
            3 => Body::Opened {
                end: from.u32()?,
                start: from.u32()?,
                last: Some(from.i64()?).filter(|ns| *ns != i64::MIN).map(SyncedTime::from_ns),
                deadline: Some(from.i64()?).filter(|ns| *ns > 0).map(Span::from_ns),
                lifespan: Some(from.i64()?).filter(|ns| *ns > 0).map(Span::from_ns),
                capacity: from.u32()?,
                parameters: from.parameters()?,
                attachment: from.attachment()?,
            },
            4 => {
                let (kind, at) = (from.u8()?, from.i64()?);
                let base = match kind {
                    0 => Base::Virtual,
                    1 => Base::Machine(at),
                    2 => Base::Network(at),
                    _ => return Err(ProtocolViolation),
                };
                let offset = Span::from_ns(from.i64()?);
                let drift_ppb = i32::try_from(from.i64()?).map_err(|_| ProtocolViolation)?;
                let wander = Span::from_ns(from.i64()?);
                let wander_period = Span::from_ns(from.i64()?);
                if wander < Span::ZERO || (wander > Span::ZERO && wander_period <= Span::ZERO) {
                    return Err(ProtocolViolation);
                }
                let step = ClockStep {
                    by: Span::from_ns(from.i64()?),
                    from: NetTime::from_ns(from.i64()?),
                    until: NetTime::from_ns(from.i64()?),
                };
                if step.by != Span::ZERO && step.from >= step.until {
                    return Err(ProtocolViolation);
                }
                Body::Started(Start {
                    base,
                    clock: ClockError {
                        offset,
                        drift_ppb,
                        since: NetTime::ZERO,
                        wander,
                        wander_period,
                        step,
                    },
                    write_until: NetTime::from_ns(from.i64()?),
                    stop: NetTime::from_ns(from.i64()?),
                })
            }
            5 => Body::Frame {
                arrived: SyncedTime::from_ns(from.i64()?),
                ready_local: SyncedTime::from_ns(from.i64()?),
                ready: NetTime::from_ns(from.i64()?),
                octets: from.rest(),
            },
            6 => Body::Empty,
            7 => Body::Ticket(from.u32()?),
            8 => Body::Stopped,
            9 => Body::Ready(from.u32()?),
            _ => return Err(ProtocolViolation),
        };
        from.end(Self { local, network, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameters() -> ChannelParameters {
        ChannelParameters {
            destination: MacAddress([1, 0, 0x5e, 1, 0x11, 0x42]),
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            stream_id: StreamId(u64::MAX),
            vlan: 2,
            pcp: 3,
            size: Octets::new(8),
            integrity: Integrity::Authenticated,
            replicated: false,
            launch: None,
            talker_address: Some(MacAddress([2, 0, 0, 0, 0, 9])),
            interval: Span::from_ms(20),
            tolerance: Span::from_us(125),
            catch_up: Span::from_us(1_125),
            fixed_delay: Span::from_ms(2),
            clock_error: Span::from_us(5),
            epoch: -7,
        }
    }

    #[test]
    fn every_request_is_read_back_as_it_was_written() {
        for request in [
            Request::Hello(VERSION),
            Request::Begin(u32::MAX),
            Request::BeginInMemory(1),
            Request::Yield,
            Request::Took(u32::MAX, Timeout::Endless),
            Request::Open { role: Role::Talker, size: Octets::new(8), name: "mcast42" },
            Request::Open { role: Role::Listener, size: Octets::new(8), name: "" },
            Request::Start,
            Request::Sleep(SyncedTime::from_ns(-5)),
            Request::Work(Work::of(Span::from_us(3))),
            Request::Work(Work {
                until: SyncedTime::from_ns(4),
                priority: 99,
                deadline: SyncedTime::from_ns(-5),
                ..Work::of(Span::ZERO)
            }),
            Request::Send(1, &[9; MAX_FRAME]),
            Request::Launch(1, SyncedTime::from_ns(-5), &[9; MAX_FRAME]),
            Request::Receive(2, Timeout::None),
            Request::Receive(2, Timeout::Until(SyncedTime::MAX)),
            Request::Receive(2, Timeout::Endless),
            Request::Announce,
            Request::Join(4),
            Request::Park {
                key: u64::MAX,
                patience: Timeout::Until(SyncedTime::from_ns(9)),
                holder: 7,
            },
            Request::Unpark(1),
            Request::Close(3),
            Request::Bye,
            Request::Select(
                EndpointNumbers::new(&[1, 0, 0, 0, 2, 0, 0, 0]).unwrap(),
                Timeout::None,
            ),
        ] {
            let mut packet = [0; MAX_PACKET];
            let length = request.encode(&mut packet);
            assert_eq!(Request::decode(&packet[..length]), Ok(request));
        }
    }

    #[test]
    fn every_reply_is_read_back_as_it_was_written() {
        let clock = ClockError {
            offset: Span::from_ns(-3),
            drift_ppb: -40,
            since: NetTime::ZERO,
            wander: Span::from_ns(50),
            wander_period: Span::from_s(1),
            step: ClockStep {
                by: Span::from_us(-7),
                from: NetTime::from_ns(3),
                until: NetTime::MAX,
            },
        };
        let (write_until, stop) = (NetTime::from_ns(5), NetTime::from_ns(6));
        for body in [
            Body::Done,
            Body::Refused("why"),
            Body::Opened {
                end: 1,
                start: 1,
                last: None,
                deadline: None,
                lifespan: Some(Span::from_ms(7)),
                capacity: 2,
                parameters: parameters(),
                attachment: None,
            },
            Body::Opened {
                end: 1,
                start: 255,
                last: Some(SyncedTime::from_ns(-7)),
                deadline: Some(Span::from_ms(5)),
                lifespan: None,
                capacity: 2,
                parameters: parameters(),
                attachment: Some(Attachment {
                    transport: TransportKind::Udp6,
                    options: InterfaceOptions {
                        queue: 3,
                        sent_stamps: true,
                        own_host: true,
                        ..Default::default()
                    },
                    interface: "eth0",
                    by_station: true,
                    is_shared: false,
                }),
            },
            Body::Started(Start { base: Base::Virtual, clock, write_until, stop }),
            Body::Started(Start { base: Base::Machine(-1), clock, write_until, stop }),
            Body::Started(Start { base: Base::Network(5), clock, write_until, stop }),
            Body::Ready(3),
            Body::Frame {
                arrived: SyncedTime::from_ns(4),
                ready_local: SyncedTime::from_ns(6),
                ready: NetTime::from_ns(5),
                octets: &[1, 2, 3],
            },
            Body::Empty,
            Body::Ticket(9),
            Body::Stopped,
        ] {
            let reply = Reply { local: SyncedTime::from_ns(1), network: NetTime::MAX, body };
            let mut packet = [0; MAX_PACKET];
            let length = reply.encode(&mut packet);
            assert_eq!(Reply::decode(&packet[..length]), Ok(reply));
        }
    }

    #[test]
    fn a_refusal_longer_than_a_message_is_cut_at_a_character() {
        let text = "é".repeat(MAX_TEXT);
        let (local, network) = (SyncedTime::ZERO, NetTime::ZERO);
        let mut packet = [0; MAX_PACKET];
        let length = Reply { local, network, body: Body::Refused(&text) }.encode(&mut packet);
        let reply = Reply::decode(&packet[..length]).expect("a reply");
        assert_eq!(reply.body, Body::Refused(&text[..MAX_TEXT]));
    }

    proptest! {
        #[test]
        fn no_packet_makes_the_decoders_panic(
            packet in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = Request::decode(&packet);
            let _ = Reply::decode(&packet);
        }
    }
}
