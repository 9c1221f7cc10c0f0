//! The messages: octets ↔ values (802.1AS-2020 10.6 and 11.4; IEEE 1588-2019 clauses 13, 14).
//!
//! Reading is total: any octets give a [`Message`] or a [`MessageError`], never a panic, in time
//! linear in their number. Octets behind a message (padding) and TLVs of unknown types are skipped.

use crate::gptp::best_master::SystemIdentity;
use crate::gptp::time::{LocalClockTime, PtpTime, RateOffset, ScaledNs};
use onbeat_model::units::MacAddress;
use std::fmt;

/// majorSdoId of gPTP (8.1); ptp4l calls it transportSpecific.
const PROFILE: u8 = 1;
/// versionPTP and, as IEEE 1588-2019 wants, minorVersionPTP (10.6.2.2.3, 4).
const VERSION: u8 = 2;
const MINOR_VERSION: u8 = 1;
/// Octets of the header that all messages have (10.6.2).
const HEADER: usize = 34;
/// flagField (10.6.2.2.8): a Follow_Up comes; the time is that of PTP's epoch.
const TWO_STEP: u16 = 0x0200;
/// The flags that an Announce passes on from the grandmaster: the second octet (10.6.2.2.8).
const GRANDMASTER_FLAGS: u16 = 0x00ff;
/// TLV types (14.1 of IEEE 1588-2019).
const TLV_ORGANIZATION: u16 = 3;
const TLV_PATH_TRACE: u16 = 8;
/// organizationId and organizationSubType of the Follow_Up information TLV (11.4.4.3).
const FOLLOW_UP_INFORMATION: [u8; 6] = [0x00, 0x80, 0xc2, 0, 0, 1];

/// The longest path trace: what fits in a frame of 1,500 octets (10.6.3.3.4).
pub const MAX_PATH: usize = 179;
/// The longest message.
pub const MAX_MESSAGE: usize = 1_500;

/// clockIdentity: an EUI-64 (8.5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockIdentity(pub [u8; 8]);

impl From<MacAddress> for ClockIdentity {
    /// With FF-FE in its middle, as IEEE 1588-2008 7.5.2.2.2 makes it, and ptp4l.
    fn from(MacAddress([a, b, c, d, e, f]): MacAddress) -> Self {
        Self([a, b, c, 0xff, 0xfe, d, e, f])
    }
}
impl fmt::Display for ClockIdentity {
    /// As ptp4l writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{g:02x}{h:02x}{i:02x}")
    }
}

/// portIdentity (8.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIdentity {
    /// Whose port.
    pub clock: ClockIdentity,
    /// Which, from 1.
    pub port: u16,
}

/// A time as messages have it (6.4.3.4): 48 bits of seconds, and nanoseconds below 10⁹.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: u64,
    nanoseconds: u32,
}

/// What comes later is no time that a network has: 272 years.
const SECONDS_END: u64 = 1 << 33;
const NS_PER_S: i128 = 1_000_000_000;

impl Timestamp {
    /// Of an instant since some epoch: the whole nanoseconds, and the fraction that is left.
    /// `None` for what the network never reaches.
    fn of(since: ScaledNs) -> Option<(Self, ScaledNs)> {
        let (ns, fraction) = (since.scaled() >> 16, since.scaled() & 0xffff);
        let seconds = u64::try_from(ns.div_euclid(NS_PER_S)).ok()?;
        let nanoseconds = ns.rem_euclid(NS_PER_S) as u32;
        (seconds < SECONDS_END)
            .then_some((Self { seconds, nanoseconds }, ScaledNs::from_scaled(fraction)))
    }
    /// Of an instant of a node's own clock, without the fraction.
    pub fn of_free(at: LocalClockTime) -> Option<Self> {
        Self::of(at.since_epoch()).map(|(stamp, _)| stamp)
    }
    /// Of an instant of distributed time, and its fraction, which belongs to the correction.
    pub fn of_ptp(at: PtpTime) -> Option<(Self, ScaledNs)> {
        Self::of(at.since_epoch())
    }
    /// The instant; `None` beyond 272 years.
    pub fn instant(self) -> Option<PtpTime> {
        let ns = i128::from(self.seconds) * NS_PER_S + i128::from(self.nanoseconds);
        let instant = PtpTime::from_epoch(ScaledNs::from_scaled(ns << 16));
        (self.seconds < SECONDS_END).then_some(instant)
    }
}

/// What all messages have (10.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// domainNumber.
    pub domain: u8,
    /// correctionField, in 2⁻¹⁶ ns.
    pub correction: i64,
    /// sourcePortIdentity.
    pub source: PortIdentity,
    /// sequenceId.
    pub sequence: u16,
    /// logMessageInterval; 127 where there is none.
    pub log_interval: i8,
}

/// The Follow_Up information TLV (11.4.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowUpInformation {
    /// cumulativeScaledRateOffset: how much faster the grandmaster runs than who sends this.
    pub rate: i32,
    /// gmTimeBaseIndicator: another number, another time base.
    pub time_base: u16,
    /// lastGmPhaseChange (ScaledNs, 96 bits): by how much the time then jumped.
    pub phase_change: [u8; 12],
    /// scaledLastGmFreqChange: and by how much its rate.
    pub frequency_change: i32,
}

impl FollowUpInformation {
    /// With this rate, as far as the field has room for it.
    pub fn with_rate(self, rate: RateOffset) -> Self {
        let rate = rate.scaled().clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        Self { rate, ..self }
    }
}

/// What an Announce says (10.6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce {
    /// The second octet of its flags: leap seconds, whether the time scale is PTP's, and so on.
    pub flags: u8,
    /// currentUtcOffset in seconds.
    pub utc_offset: i16,
    /// The grandmaster.
    pub root: SystemIdentity,
    /// Links between it and who sends this.
    pub steps_removed: u16,
    /// timeSource.
    pub time_source: u8,
    /// The path trace TLV (10.6.3.3): the clocks it has passed; at most [`MAX_PATH`].
    pub path: Vec<ClockIdentity>,
}

/// The kinds of messages that this implementation knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Its receipt is the event; Follow_Up says when it was sent.
    Sync,
    /// Asks the neighbour for Pdelay_Resp.
    PdelayRequest,
    /// When the request came, and whose it was.
    PdelayResponse {
        /// requestReceiptTimestamp.
        received: Timestamp,
        /// requestingPortIdentity.
        requester: PortIdentity,
    },
    /// When the Sync of the same number was sent.
    FollowUp {
        /// preciseOriginTimestamp.
        origin: Timestamp,
        /// Its TLV, if it has one; plain PTP does not.
        information: Option<FollowUpInformation>,
    },
    /// When the Pdelay_Resp of the same number was sent.
    PdelayResponseFollowUp {
        /// responseOriginTimestamp.
        origin: Timestamp,
        /// requestingPortIdentity.
        requester: PortIdentity,
    },
    /// Who is grandmaster.
    Announce(Announce),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What all have.
    pub header: Header,
    /// What kind it is.
    pub body: Body,
}

/// Why octets are no message for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Fewer octets than the message says or its kind needs.
    #[error("the message is too short")]
    Short,
    /// Another profile of PTP.
    #[error("majorSdoId {0} is not gPTP's")]
    Profile(u8),
    /// Another version of PTP.
    #[error("PTP version {0}")]
    Version(u8),
    /// A kind that is not handled here: signalling, management, and what gPTP does not have.
    #[error("message type {0:#x} is not handled")]
    Type(u8),
    /// A Sync that carries its time itself, or a response without follow-up.
    #[error("one-step messages are not handled")]
    OneStep,
    /// Nanoseconds of 10⁹ or more.
    #[error("a timestamp has more nanoseconds than a second")]
    Nanoseconds,
    /// A TLV that is longer than the message, or not as long as its type.
    #[error("a TLV does not fit")]
    Tlv,
}

/// Takes fields off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(MessageError::Short)?;
        self.0 = rest;
        Ok(*taken)
    }
    fn u8(&mut self) -> Result<u8, MessageError> {
        self.take().map(|[octet]| octet)
    }
    fn u16(&mut self) -> Result<u16, MessageError> {
        self.take().map(u16::from_be_bytes)
    }
    fn i32(&mut self) -> Result<i32, MessageError> {
        self.take().map(i32::from_be_bytes)
    }
    fn identity(&mut self) -> Result<PortIdentity, MessageError> {
        Ok(PortIdentity { clock: ClockIdentity(self.take()?), port: self.u16()? })
    }
    fn timestamp(&mut self) -> Result<Timestamp, MessageError> {
        let high = u64::from(self.u16()?);
        let low = u64::from(u32::from_be_bytes(self.take()?));
        let nanoseconds = u32::from_be_bytes(self.take()?);
        if nanoseconds >= 1_000_000_000 {
            return Err(MessageError::Nanoseconds);
        }
        Ok(Timestamp { seconds: high << 32 | low, nanoseconds })
    }
    /// The next TLV: its type and its value.
    fn tlv(&mut self) -> Result<Option<(u16, Self)>, MessageError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let header = |_| MessageError::Tlv;
        let (kind, length) = (self.u16().map_err(header)?, self.u16().map_err(header)?);
        let (value, rest) = self.0.split_at_checked(length.into()).ok_or(MessageError::Tlv)?;
        self.0 = rest;
        Ok(Some((kind, Self(value))))
    }
}

impl Message {
    /// Reads a message, without an Ethernet header.
    ///
    /// # Errors
    /// When the octets are no message, or one that is not handled.
    pub fn parse(octets: &[u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(octets);
        let (first, version) = (reader.u8()?, reader.u8()?);
        if version & 0x0f != VERSION {
            return Err(MessageError::Version(version & 0x0f));
        }
        if first >> 4 != PROFILE {
            return Err(MessageError::Profile(first >> 4));
        }
        let length = usize::from(reader.u16()?);
        let whole = octets.get(HEADER..length).ok_or(MessageError::Short)?;
        let domain = reader.u8()?;
        reader.u8()?; // minorSdoId
        let flags = reader.u16()?;
        let correction = i64::from_be_bytes(reader.take()?);
        reader.take::<4>()?; // messageTypeSpecific
        let source = reader.identity()?;
        let sequence = reader.u16()?;
        reader.u8()?; // controlField: says nothing that the type does not
        let log_interval = reader.u8()? as i8;
        let header = Header { domain, correction, source, sequence, log_interval };
        let body = parse_body(first & 0x0f, flags, Reader(whole))?;
        Ok(Self { header, body })
    }

    /// Appends the message's octets.
    ///
    /// # Panics
    /// When a path trace has more than [`MAX_PATH`] clocks.
    pub fn emit(&self, into: &mut Vec<u8>) {
        let begin = into.len();
        let (kind, control, mut flags) = match &self.body {
            Body::Sync => (0, 0, TWO_STEP),
            Body::PdelayRequest => (2, 5, 0),
            Body::PdelayResponse { .. } => (3, 5, TWO_STEP),
            Body::FollowUp { .. } => (8, 2, 0),
            Body::PdelayResponseFollowUp { .. } => (10, 5, 0),
            Body::Announce(announce) => (11, 5, u16::from(announce.flags)),
        };
        if !matches!(self.body, Body::Announce(_)) {
            flags |= PTP_TIMESCALE;
        }
        let header = &self.header;
        into.extend([PROFILE << 4 | kind, MINOR_VERSION << 4 | VERSION, 0, 0, header.domain, 0]);
        into.extend(flags.to_be_bytes());
        into.extend(header.correction.to_be_bytes());
        into.extend([0; 4]);
        put_identity(into, header.source);
        into.extend(header.sequence.to_be_bytes());
        into.extend([control, header.log_interval as u8]);
        self.emit_body(into);
        let length = (into.len() - begin) as u16;
        into[begin + 2..begin + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn emit_body(&self, into: &mut Vec<u8>) {
        match &self.body {
            Body::Sync => into.extend([0; 10]),
            Body::PdelayRequest => into.extend([0; 20]),
            Body::PdelayResponse { received: at, requester }
            | Body::PdelayResponseFollowUp { origin: at, requester } => {
                put_timestamp(into, *at);
                put_identity(into, *requester);
            }
            Body::FollowUp { origin, information } => {
                put_timestamp(into, *origin);
                let Some(information) = information else { return };
                into.extend(TLV_ORGANIZATION.to_be_bytes());
                into.extend(28_u16.to_be_bytes());
                into.extend(FOLLOW_UP_INFORMATION);
                into.extend(information.rate.to_be_bytes());
                into.extend(information.time_base.to_be_bytes());
                into.extend(information.phase_change);
                into.extend(information.frequency_change.to_be_bytes());
            }
            Body::Announce(announce) => put_announce(into, announce),
        }
    }
}

/// The flag ptpTimescale, which gPTP sets in all messages (10.6.2.2.8, table 10-9).
const PTP_TIMESCALE: u16 = 0x0008;

fn parse_body(kind: u8, flags: u16, mut reader: Reader<'_>) -> Result<Body, MessageError> {
    let two_steps = || if flags & TWO_STEP != 0 { Ok(()) } else { Err(MessageError::OneStep) };
    match kind {
        0 => {
            reader.take::<10>()?;
            two_steps()?;
            Ok(Body::Sync)
        }
        2 => {
            reader.take::<20>()?;
            Ok(Body::PdelayRequest)
        }
        3 => {
            two_steps()?;
            let received = reader.timestamp()?;
            Ok(Body::PdelayResponse { received, requester: reader.identity()? })
        }
        8 => {
            let origin = reader.timestamp()?;
            let mut information = None;
            while let Some((kind, value)) = reader.tlv()? {
                if kind == TLV_ORGANIZATION && value.0.starts_with(&FOLLOW_UP_INFORMATION) {
                    information = Some(parse_information(value)?);
                }
            }
            Ok(Body::FollowUp { origin, information })
        }
        10 => {
            let origin = reader.timestamp()?;
            Ok(Body::PdelayResponseFollowUp { origin, requester: reader.identity()? })
        }
        11 => parse_announce((flags & GRANDMASTER_FLAGS) as u8, reader),
        other => Err(MessageError::Type(other)),
    }
}

fn parse_information(mut value: Reader<'_>) -> Result<FollowUpInformation, MessageError> {
    let mut read = || {
        value.take::<6>()?;
        let (rate, time_base) = (value.i32()?, value.u16()?);
        let (phase_change, frequency_change) = (value.take()?, value.i32()?);
        Ok(FollowUpInformation { rate, time_base, phase_change, frequency_change })
    };
    read().map_err(|_: MessageError| MessageError::Tlv)
}

fn parse_announce(flags: u8, mut reader: Reader<'_>) -> Result<Body, MessageError> {
    reader.take::<10>()?;
    let utc_offset = i16::from_be_bytes(reader.take()?);
    reader.u8()?;
    let root = SystemIdentity {
        priority1: reader.u8()?,
        class: reader.u8()?,
        accuracy: reader.u8()?,
        variance: reader.u16()?,
        priority2: reader.u8()?,
        identity: ClockIdentity(reader.take()?),
    };
    let steps_removed = reader.u16()?;
    let time_source = reader.u8()?;
    let mut path = Vec::new();
    while let Some((kind, value)) = reader.tlv()? {
        if kind == TLV_PATH_TRACE {
            let (clocks, rest) = value.0.as_chunks();
            if !rest.is_empty() || clocks.len() > MAX_PATH {
                return Err(MessageError::Tlv);
            }
            path = clocks.iter().map(|clock| ClockIdentity(*clock)).collect();
        }
    }
    Ok(Body::Announce(Announce { flags, utc_offset, root, steps_removed, time_source, path }))
}

fn put_identity(into: &mut Vec<u8>, identity: PortIdentity) {
    into.extend(identity.clock.0);
    into.extend(identity.port.to_be_bytes());
}

fn put_timestamp(into: &mut Vec<u8>, at: Timestamp) {
    into.extend(&at.seconds.to_be_bytes()[2..]);
    into.extend(at.nanoseconds.to_be_bytes());
}

fn put_announce(into: &mut Vec<u8>, announce: &Announce) {
    assert!(announce.path.len() <= MAX_PATH, "a path trace of {} clocks", announce.path.len());
    let root = &announce.root;
    into.extend([0; 10]);
    into.extend(announce.utc_offset.to_be_bytes());
    into.extend([0, root.priority1, root.class, root.accuracy]);
    into.extend(root.variance.to_be_bytes());
    into.push(root.priority2);
    into.extend(root.identity.0);
    into.extend(announce.steps_removed.to_be_bytes());
    into.push(announce.time_source);
    if !announce.path.is_empty() {
        into.extend(TLV_PATH_TRACE.to_be_bytes());
        into.extend((announce.path.len() as u16 * 8).to_be_bytes());
        into.extend(announce.path.iter().flat_map(|clock| clock.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn identity()(clock: [u8; 8], port: u16) -> PortIdentity {
            PortIdentity { clock: ClockIdentity(clock), port }
        }
    }
    prop_compose! {
        fn timestamp()(seconds in 0u64..1 << 48, nanoseconds in 0u32..1_000_000_000) -> Timestamp {
            Timestamp { seconds, nanoseconds }
        }
    }
    prop_compose! {
        fn information()(
            rate: i32, time_base: u16, phase_change: [u8; 12], frequency_change: i32,
        ) -> FollowUpInformation {
            FollowUpInformation { rate, time_base, phase_change, frequency_change }
        }
    }
    prop_compose! {
        fn announce()(
            flags: u8, utc_offset: i16, priority1: u8, class: u8, accuracy: u8, variance: u16,
            priority2: u8, identity: [u8; 8], steps_removed: u16, time_source: u8,
            path in prop::collection::vec(any::<[u8; 8]>(), 0..MAX_PATH + 1),
        ) -> Announce {
            let identity = ClockIdentity(identity);
            let root =
                SystemIdentity { priority1, class, accuracy, variance, priority2, identity };
            let path = path.into_iter().map(ClockIdentity).collect();
            Announce { flags, utc_offset, root, steps_removed, time_source, path }
        }
    }

    fn message() -> impl Strategy<Value = Message> {
        let body = prop_oneof![
            Just(Body::Sync),
            Just(Body::PdelayRequest),
            (timestamp(), identity())
                .prop_map(|(received, requester)| Body::PdelayResponse { received, requester }),
            (timestamp(), prop::option::of(information()))
                .prop_map(|(origin, information)| Body::FollowUp { origin, information }),
            (timestamp(), identity())
                .prop_map(|(origin, requester)| Body::PdelayResponseFollowUp { origin, requester }),
            announce().prop_map(Body::Announce),
        ];
        let header = (any::<u8>(), any::<i64>(), identity(), any::<u16>(), any::<i8>());
        (header, body).prop_map(|((domain, correction, source, sequence, log_interval), body)| {
            let header = Header { domain, correction, source, sequence, log_interval };
            Message { header, body }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_whatever_padding_follows(
            message in message(), padding in 0usize..40,
        ) {
            let mut octets = Vec::new();
            message.emit(&mut octets);
            prop_assert!(octets.len() <= MAX_MESSAGE);
            octets.resize(octets.len() + padding, 0x5a);
            prop_assert_eq!(Message::parse(&octets), Ok(message));
        }

        #[test]
        fn no_octets_make_the_reader_panic_and_what_it_takes_is_written_back_the_same(
            octets in prop::collection::vec(any::<u8>(), 0..200), message in message(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let _ = Message::parse(&octets);
            let mut mutated = Vec::new();
            message.emit(&mut mutated);
            for (at, value) in changes {
                let at = at.index(mutated.len());
                mutated[at] = value;
            }
            mutated.truncate(cut.index(mutated.len() + 1));
            if let Ok(read) = Message::parse(&mutated) {
                let mut again = Vec::new();
                read.emit(&mut again);
                prop_assert_eq!(Message::parse(&again), Ok(read));
            }
        }
    }

    /// A Follow_Up by hand from figures 10-4, 11-6 and tables 11-9 to 11-11.
    #[test]
    fn a_follow_up_has_the_octets_of_the_standard() {
        let source = PortIdentity { clock: ClockIdentity([1, 2, 3, 4, 5, 6, 7, 8]), port: 2 };
        let header =
            Header { domain: 0, correction: 0x1_8000, source, sequence: 0x0a0b, log_interval: -3 };
        let origin = Timestamp { seconds: 0x0102_0304_0506, nanoseconds: 0x0708_090a };
        let information =
            FollowUpInformation { rate: -2, time_base: 0x1122, ..FollowUpInformation::default() };
        let body = Body::FollowUp { origin, information: Some(information) };
        let mut octets = Vec::new();
        Message { header, body }.emit(&mut octets);
        let expected = [
            &[0x18, 0x12, 0, 76, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0][..],
            &[1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 0x0a, 0x0b, 2, 0xfd],
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            &[0, 3, 0, 28, 0x00, 0x80, 0xc2, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0x11, 0x22],
            &[0; 16],
        ]
        .concat();
        assert_eq!(octets, expected);
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_reason() {
        let header = Header {
            domain: 0,
            correction: 0,
            source: PortIdentity::default(),
            sequence: 1,
            log_interval: 0,
        };
        let mut sync = Vec::new();
        Message { header, body: Body::Sync }.emit(&mut sync);
        let with = |at: usize, value: u8| {
            let mut octets = sync.clone();
            octets[at] = value;
            Message::parse(&octets)
        };
        assert_eq!(with(1, 1), Err(MessageError::Version(1)));
        assert_eq!(with(0, 0), Err(MessageError::Profile(0)));
        assert_eq!(with(0, 0x1d), Err(MessageError::Type(13)));
        assert_eq!(with(3, 45), Err(MessageError::Short));
        assert_eq!(with(3, 20), Err(MessageError::Short));
        assert_eq!(with(6, 0), Err(MessageError::OneStep));
        assert_eq!(Message::parse(&sync[..20]), Err(MessageError::Short));
    }
}
