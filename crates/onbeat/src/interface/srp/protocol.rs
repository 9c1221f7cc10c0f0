//! What programs and the reservation service of a host's interface say to each other: one message
//! in each packet of a Unix socket, of a fixed length for each kind, numbers big-endian.
//!
//! ```text
//! program → service:  Advertise | Listen, once; or Show, any number of times
//! service → program:  State after each change; to Show: a State for each stream, then Summary
//! ```
//!
//! A connection is one end of a stream: when it is closed, for whatever reason, the service
//! withdraws what it asked for. Reading is total: any octets are a message or a [`WrongMessage`].

use onbeat_model::record::Role;
use onbeat_model::system::Class;
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, MacAddress, StreamId};
use onbeat_runtime::msrp::{BridgeId, FailureCode, FailureInformation, TSpec};

/// The version of the messages: the first octet of each.
pub const VERSION: u8 = 1;
/// The most octets of a message.
pub const MESSAGE_MAX: usize = 72;

const ADVERTISE: u8 = 1;
const LISTEN: u8 = 2;
const SHOW: u8 = 3;
const STATE: u8 = 4;
const SUMMARY: u8 = 5;
const REFUSED: u8 = 6;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongMessage {
    /// It is of another version.
    #[error("it is of version {0}; version {VERSION} is understood")]
    Version(u8),
    /// It is no message of this version.
    #[error("it is not a message")]
    Other,
}

/// A stream that a talker offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its identifier.
    pub stream: StreamId,
    /// Where its frames go.
    pub destination: MacAddress,
    /// Its SR class, A or B.
    pub class: Class,
    /// Its VLAN where no neighbour says another.
    pub vid: u16,
    /// Its priority where no neighbour says another.
    pub priority: u8,
    /// How much it sends.
    pub tspec: TSpec,
}

/// What a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// To offer a stream.
    Advertise(Offer),
    /// To get a stream.
    Listen(StreamId),
    /// To be told of all streams.
    Show,
}

/// How a stream stands at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// There is no reservation service: it is looked for.
    #[default]
    NoService,
    /// The link is down, or it is not known yet whether the neighbour speaks MSRP.
    Asking,
    /// A talker: declared, and no listener is known. A listener: the talker is known, and the VLAN
    /// being joined.
    Advertised,
    /// Bandwidth is reserved.
    Ready,
    /// Bandwidth is reserved for some of the listeners.
    ReadyFailed,
    /// There are listeners, and none can get the stream.
    AskingFailed,
    /// It cannot be reserved: why, and which bridge says so.
    Failed(FailureInformation),
    /// No talker is known.
    NoTalker,
    /// The neighbour declares SR classes, and not that of the stream.
    DomainMismatch,
}

impl Phase {
    /// Whether bandwidth is reserved: a talker may send.
    pub const fn is_reserved(self) -> bool {
        matches!(self, Self::Ready | Self::ReadyFailed)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoService => "no service",
            Self::Asking => "asking",
            Self::Advertised => "advertised",
            Self::Ready => "ready",
            Self::ReadyFailed => "ready-failed",
            Self::AskingFailed => "asking-failed",
            Self::Failed(_) => "failed",
            Self::NoTalker => "no talker",
            Self::DomainMismatch => "domain mismatch",
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::NoService => 0,
            Self::Asking => 1,
            Self::Advertised => 2,
            Self::Ready => 3,
            Self::ReadyFailed => 4,
            Self::AskingFailed => 5,
            Self::Failed(_) => 6,
            Self::NoTalker => 7,
            Self::DomainMismatch => 8,
        }
    }
}

/// A stream at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    /// Which end.
    pub role: Role,
    /// Which stream.
    pub stream: StreamId,
    /// How it stands.
    pub phase: Phase,
    /// The share of the host's own port was decided here: no neighbour speaks MSRP.
    pub is_static: bool,
    /// Where its frames go, if that is known; so the next ones.
    pub destination: Option<MacAddress>,
    /// The VLAN of its frames.
    pub vid: Option<u16>,
    /// The priority of its frames.
    pub priority: Option<u8>,
    /// How much it sends.
    pub tspec: Option<TSpec>,
    /// The worst latency from the talker to here.
    pub latency: Option<Span>,
    /// The process that asks for it; 0 if unknown.
    pub process: u32,
}

impl StreamStatus {
    /// An end of which nothing is known yet.
    pub fn new(role: Role, stream: StreamId) -> Self {
        Self {
            role,
            stream,
            phase: Phase::NoService,
            is_static: false,
            destination: None,
            vid: None,
            priority: None,
            tspec: None,
            latency: None,
            process: 0,
        }
    }
}

/// What a service knows of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What its neighbour is.
    pub neighbour: Neighbour,
    /// The rate of the link.
    pub rate: BitRate,
    /// What talkers here may have of it together, classes A and B.
    pub share: [BitRate; 2],
    /// What they have.
    pub reserved: [BitRate; 2],
    /// Priority and VLAN of classes A and B, as the neighbour has them.
    pub domains: [Option<(u8, u16)>; 2],
}

/// What is at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// The link is down.
    LinkDown,
    /// It has not spoken MSRP, and there still is time to.
    Asking,
    /// It speaks MSRP.
    Msrp,
    /// It does not speak MSRP.
    Silent,
}

impl Neighbour {
    const ALL: [Self; 4] = [Self::LinkDown, Self::Asking, Self::Msrp, Self::Silent];
}

/// Why a service does not take what a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It does not understand the request, as one of another version.
    Request,
    /// Another program of this host offers the stream.
    StreamInUse,
    /// It has as many streams as it can have.
    Full,
    /// The caller may not ask.
    NotPermitted,
}

impl Refusal {
    const ALL: [Self; 4] = [Self::Request, Self::StreamInUse, Self::Full, Self::NotPermitted];

    /// What it means.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Request => "the reservation service is of another version",
            Self::StreamInUse => "another program of this host offers the stream",
            Self::Full => "the reservation service has as many streams as it can have",
            Self::NotPermitted => "the reservation service does not serve this user",
        }
    }
}

/// What a service says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// How a stream stands.
    State(StreamStatus),
    /// The last answer to [`Request::Show`].
    Summary(Summary),
    /// What was asked for is refused, and the connection closed.
    Refused(Refusal),
}

/// A message being written.
struct Writer(Vec<u8>);

impl Writer {
    fn of(kind: u8) -> Self {
        Self(vec![VERSION, kind])
    }

    fn put<const N: usize>(mut self, octets: [u8; N]) -> Self {
        self.0.extend(octets);
        self
    }

    /// One octet whether it is there, then the value, zeros if it is not.
    fn maybe<const N: usize>(self, octets: Option<[u8; N]>) -> Self {
        self.put([u8::from(octets.is_some())]).put(octets.unwrap_or([0; N]))
    }
}

/// A message being read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WrongMessage> {
        let (octets, rest) = self.0.split_first_chunk().ok_or(WrongMessage::Other)?;
        self.0 = rest;
        Ok(*octets)
    }

    fn octet(&mut self) -> Result<u8, WrongMessage> {
        self.take::<1>().map(|[octet]| octet)
    }

    fn half(&mut self) -> Result<u16, WrongMessage> {
        self.take().map(u16::from_be_bytes)
    }

    fn rate(&mut self) -> Result<BitRate, WrongMessage> {
        self.take().map(|octets| BitRate::from_bps(u64::from_be_bytes(octets)))
    }

    fn stream(&mut self) -> Result<StreamId, WrongMessage> {
        self.take().map(|octets| StreamId(u64::from_be_bytes(octets)))
    }

    fn maybe<const N: usize>(&mut self) -> Result<Option<[u8; N]>, WrongMessage> {
        let (is_there, octets) = (self.octet()?, self.take()?);
        match is_there {
            0 if octets == [0; N] => Ok(None),
            1 => Ok(Some(octets)),
            _ => Err(WrongMessage::Other),
        }
    }

    fn flag(&mut self) -> Result<bool, WrongMessage> {
        match self.octet()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WrongMessage::Other),
        }
    }

    fn tag(&mut self) -> Result<(u16, u8), WrongMessage> {
        let (vid, priority) = (self.half()?, self.octet()?);
        if vid <= 4_094 && priority <= 7 { Ok((vid, priority)) } else { Err(WrongMessage::Other) }
    }

    fn phase(&mut self) -> Result<Phase, WrongMessage> {
        let (number, code, bridge) = (self.octet()?, self.octet()?, self.take::<8>()?);
        let failure = FailureInformation { bridge: BridgeId(bridge), code: FailureCode(code) };
        let phase = match number {
            0 => Phase::NoService,
            1 => Phase::Asking,
            2 => Phase::Advertised,
            3 => Phase::Ready,
            4 => Phase::ReadyFailed,
            5 => Phase::AskingFailed,
            6 => return Ok(Phase::Failed(failure)),
            7 => Phase::NoTalker,
            8 => Phase::DomainMismatch,
            _ => return Err(WrongMessage::Other),
        };
        if (code, bridge) == (0, [0; 8]) { Ok(phase) } else { Err(WrongMessage::Other) }
    }

    fn end<T>(self, value: T) -> Result<T, WrongMessage> {
        if self.0.is_empty() { Ok(value) } else { Err(WrongMessage::Other) }
    }

    /// The kind of a message of this version, and what follows.
    fn open(octets: &[u8]) -> Result<(u8, Reader<'_>), WrongMessage> {
        match octets {
            [VERSION, kind, rest @ ..] => Ok((*kind, Reader(rest))),
            [version, ..] if *version != VERSION => Err(WrongMessage::Version(*version)),
            _ => Err(WrongMessage::Other),
        }
    }
}

fn tspec_octets(tspec: TSpec) -> [u8; 4] {
    let [a, b] = tspec.max_frame_size.to_be_bytes();
    let [c, d] = tspec.max_interval_frames.to_be_bytes();
    [a, b, c, d]
}

fn tspec_of([a, b, c, d]: [u8; 4]) -> TSpec {
    let [max_frame_size, max_interval_frames] = [[a, b], [c, d]].map(u16::from_be_bytes);
    TSpec { max_frame_size, max_interval_frames }
}

impl Request {
    /// Its octets.
    pub fn to_octets(self) -> Vec<u8> {
        match self {
            Self::Advertise(offer) => {
                let Offer { stream, destination, class, vid, priority, tspec } = offer;
                let class = onbeat_runtime::msrp::class_id(class);
                let writer = Writer::of(ADVERTISE).put(stream.0.to_be_bytes()).put(destination.0);
                let writer = writer.put([class]).put(vid.to_be_bytes()).put([priority]);
                writer.put(tspec_octets(tspec)).0
            }
            Self::Listen(stream) => Writer::of(LISTEN).put(stream.0.to_be_bytes()).0,
            Self::Show => Writer::of(SHOW).0,
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// These octets are none.
    pub fn parse(octets: &[u8]) -> Result<Self, WrongMessage> {
        let (kind, mut reader) = Reader::open(octets)?;
        let request = match kind {
            ADVERTISE => {
                let stream = reader.stream()?;
                let destination = MacAddress(reader.take()?);
                let class = match reader.octet()? {
                    6 => Class::A,
                    5 => Class::B,
                    _ => return Err(WrongMessage::Other),
                };
                let (vid, priority) = reader.tag()?;
                let tspec = tspec_of(reader.take()?);
                Self::Advertise(Offer { stream, destination, class, vid, priority, tspec })
            }
            LISTEN => Self::Listen(reader.stream()?),
            SHOW => Self::Show,
            _ => return Err(WrongMessage::Other),
        };
        reader.end(request)
    }
}

impl Answer {
    /// Its octets.
    pub fn to_octets(self) -> Vec<u8> {
        match self {
            Self::State(status) => status.to_octets(),
            Self::Summary(summary) => {
                let Summary { neighbour, rate, share, reserved, domains } = summary;
                let number = Neighbour::ALL.iter().position(|known| *known == neighbour);
                let mut writer = Writer::of(SUMMARY).put([number.unwrap_or_default() as u8]);
                for rate in [rate].into_iter().chain(share).chain(reserved) {
                    writer = writer.put(rate.as_bps().to_be_bytes());
                }
                for domain in domains {
                    writer = writer.maybe(domain.map(|(priority, vid)| {
                        let [high, low] = vid.to_be_bytes();
                        [high, low, priority]
                    }));
                }
                writer.0
            }
            Self::Refused(why) => {
                let number = Refusal::ALL.iter().position(|known| *known == why);
                Writer::of(REFUSED).put([number.unwrap_or_default() as u8]).0
            }
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// These octets are none.
    pub fn parse(octets: &[u8]) -> Result<Self, WrongMessage> {
        let (kind, mut reader) = Reader::open(octets)?;
        let answer = match kind {
            STATE => Self::State(StreamStatus::read(&mut reader)?),
            SUMMARY => {
                let neighbour = Neighbour::ALL.get(usize::from(reader.octet()?));
                let neighbour = *neighbour.ok_or(WrongMessage::Other)?;
                let rate = reader.rate()?;
                let share = [reader.rate()?, reader.rate()?];
                let reserved = [reader.rate()?, reader.rate()?];
                let mut domains = [None; 2];
                for domain in &mut domains {
                    if let Some(tag) = reader.maybe::<3>()? {
                        let (vid, priority) = Reader(&tag).tag()?;
                        *domain = Some((priority, vid));
                    }
                }
                Self::Summary(Summary { neighbour, rate, share, reserved, domains })
            }
            REFUSED => {
                let why = Refusal::ALL.get(usize::from(reader.octet()?));
                Self::Refused(*why.ok_or(WrongMessage::Other)?)
            }
            _ => return Err(WrongMessage::Other),
        };
        reader.end(answer)
    }
}

impl StreamStatus {
    fn to_octets(self) -> Vec<u8> {
        let role = u8::from(self.role == Role::Listener);
        let failure = match self.phase {
            Phase::Failed(failure) => failure,
            _ => FailureInformation { bridge: BridgeId([0; 8]), code: FailureCode(0) },
        };
        let latency = self.latency.map(|latency| latency.as_ns().to_be_bytes());
        Writer::of(STATE)
            .put([role])
            .put(self.stream.0.to_be_bytes())
            .put([self.phase.number(), failure.code.0])
            .put(failure.bridge.0)
            .put([u8::from(self.is_static)])
            .maybe(self.destination.map(|address| address.0))
            .maybe(self.vid.map(u16::to_be_bytes))
            .maybe(self.priority.map(|priority| [priority]))
            .maybe(self.tspec.map(tspec_octets))
            .maybe(latency)
            .put(self.process.to_be_bytes())
            .0
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, WrongMessage> {
        let role = if reader.flag()? { Role::Listener } else { Role::Talker };
        let stream = reader.stream()?;
        let phase = reader.phase()?;
        let is_static = reader.flag()?;
        let destination = reader.maybe()?.map(MacAddress);
        let vid = reader.maybe()?.map(u16::from_be_bytes);
        let priority = reader.maybe()?.map(|[priority]| priority);
        if vid.is_some_and(|vid| vid > 4_094) || priority.is_some_and(|priority| priority > 7) {
            return Err(WrongMessage::Other);
        }
        let tspec = reader.maybe()?.map(tspec_of);
        let latency = reader.maybe()?.map(|octets| Span::from_ns(i64::from_be_bytes(octets)));
        let process = u32::from_be_bytes(reader.take()?);
        Ok(Self {
            role,
            stream,
            phase,
            is_static,
            destination,
            vid,
            priority,
            tspec,
            latency,
            process,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offer() -> Offer {
        Offer {
            stream: StreamId(0x0200_0000_0001_0007),
            destination: MacAddress([0x91, 0xe0, 0xf0, 0, 0xfe, 1]),
            class: Class::A,
            vid: 2,
            priority: 3,
            tspec: TSpec { max_frame_size: 32, max_interval_frames: 1 },
        }
    }

    #[test]
    fn an_advertisement_has_these_octets() {
        let expected = [
            &[1, 1][..],
            &[2, 0, 0, 0, 0, 1, 0, 7],
            &[0x91, 0xe0, 0xf0, 0, 0xfe, 1],
            &[6, 0, 2, 3],
            &[0, 32, 0, 1],
        ];
        assert_eq!(Request::Advertise(offer()).to_octets(), expected.concat());
    }

    fn answers() -> Vec<Answer> {
        let bare = StreamStatus::new(Role::Talker, StreamId(7));
        let failure = FailureInformation {
            bridge: BridgeId([0x80, 0, 2, 0, 0, 0, 0, 1]),
            code: FailureCode::BANDWIDTH,
        };
        let full = StreamStatus {
            role: Role::Listener,
            phase: Phase::Failed(failure),
            is_static: true,
            destination: Some(MacAddress([1; 6])),
            vid: Some(2),
            priority: Some(3),
            tspec: Some(offer().tspec),
            latency: Some(Span::from_us(125)),
            process: 4_711,
            ..bare
        };
        let rate = BitRate::from_mbps;
        let summary = Summary {
            neighbour: Neighbour::Silent,
            rate: rate(100),
            share: [rate(75), rate(0)],
            reserved: [rate(1), rate(2)],
            domains: [Some((3, 2)), None],
        };
        let mut all = vec![Answer::State(bare), Answer::State(full), Answer::Summary(summary)];
        all.extend(Refusal::ALL.map(Answer::Refused));
        all
    }

    #[test]
    fn messages_are_read_as_they_are_written_and_no_part_of_one_is_one() {
        for request in [Request::Advertise(offer()), Request::Listen(StreamId(7)), Request::Show] {
            let octets = request.to_octets();
            assert_eq!(Request::parse(&octets), Ok(request));
            for length in 0..octets.len() {
                assert_eq!(Request::parse(&octets[..length]), Err(WrongMessage::Other));
            }
            assert_eq!(Request::parse(&[&octets[..], &[0]].concat()), Err(WrongMessage::Other));
        }
        for answer in answers() {
            let octets = answer.to_octets();
            assert!(octets.len() <= MESSAGE_MAX, "{}", octets.len());
            assert_eq!(Answer::parse(&octets), Ok(answer));
            for length in 0..octets.len() {
                assert_eq!(Answer::parse(&octets[..length]), Err(WrongMessage::Other));
            }
        }
    }

    #[test]
    fn another_version_says_which() {
        assert_eq!(Request::parse(&[2, 3]), Err(WrongMessage::Version(2)));
        assert_eq!(Answer::parse(&[0]), Err(WrongMessage::Version(0)));
    }

    proptest! {
        #[test]
        fn what_is_read_of_any_octets_is_written_the_same(
            kind in 0u8..8, octets in prop::collection::vec(0u8..4, 0..MESSAGE_MAX),
        ) {
            let octets = [&[VERSION, kind][..], &octets].concat();
            if let Ok(request) = Request::parse(&octets) {
                prop_assert_eq!(&request.to_octets(), &octets);
            }
            if let Ok(answer) = Answer::parse(&octets) {
                prop_assert_eq!(&answer.to_octets(), &octets);
            }
        }
    }
}
