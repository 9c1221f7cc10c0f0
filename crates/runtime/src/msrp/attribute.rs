//! The attributes of MSRP, and their octets (802.1Q-2018 35.2.2).

use crate::mrp::{AttributeType, MrpApplication};
use crate::msrp::failure::{BridgeId, FailureCode, FailureInformation};
use onbeat_model::time::Span;
use onbeat_model::units::{MacAddress, StreamId};

/// MSRP.
#[derive(Clone, Copy, Debug)]
pub struct Msrp;

/// Numbers of the attribute types (Table 35-1).
const ADVERTISE: u8 = 1;
const FAILED: u8 = 2;
const LISTENER: u8 = 3;
const DOMAIN: u8 = 4;

/// What a stream may send in each class measurement interval (35.2.2.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TSpec {
    /// Octets of MAC client data, without headers.
    pub max_frame_size: u16,
    /// Frames.
    pub max_interval_frames: u16,
}

/// How important a stream is (35.2.2.8.5): emergency streams come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// Rank 0.
    Emergency,
    /// Rank 1.
    #[default]
    Normal,
}

/// A Talker Advertise, or a Talker Failed if it has a failure (35.2.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TalkerDeclaration {
    /// The stream.
    pub stream: StreamId,
    /// Where its frames go.
    pub destination: MacAddress,
    /// In which VLAN.
    pub vid: u16,
    /// How much it sends.
    pub tspec: TSpec,
    /// The priority of its frames: that of its SR class.
    pub priority: u8,
    /// Its rank.
    pub rank: Rank,
    /// The worst latency from the talker to here, in nanoseconds.
    pub accumulated_latency_ns: u32,
    /// Why no reservation can be made.
    pub failure: Option<FailureInformation>,
}

impl TalkerDeclaration {
    /// Whether nothing differs that must stay as it was first declared (35.2.2.8.1).
    pub fn is_same_stream(&self, other: &Self) -> bool {
        let fixed = |talker: &Self| {
            let Self { stream, destination, vid, tspec, priority, rank, .. } = *talker;
            (stream, destination, vid, tspec, priority, rank)
        };
        fixed(self) == fixed(other)
    }

    /// The same with more latency; the most that the field can say if it is more.
    pub fn later_by(self, latency: Span) -> Self {
        let more = u32::try_from(latency.as_ns().max(0)).unwrap_or(u32::MAX);
        let accumulated_latency_ns = self.accumulated_latency_ns.saturating_add(more);
        Self { accumulated_latency_ns, ..self }
    }
}

/// What a listener, or all behind a port, declare (35.2.2.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerDeclaration {
    /// All ask for the stream, none can get it.
    AskingFailed,
    /// All ask for it and are ready.
    Ready,
    /// Some are ready, some cannot get it.
    ReadyFailed,
}

impl ListenerDeclaration {
    /// What two ports declare together (35.2.4.4.3).
    pub fn merge(self, other: Self) -> Self {
        if self == other { self } else { Self::ReadyFailed }
    }

    /// Whether someone is ready, so that bandwidth is reserved.
    pub fn is_ready(self) -> bool {
        self != Self::AskingFailed
    }
}

/// An SR class as a port declares it (35.2.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainDeclaration {
    /// SRclassID: 6 for class A, 5 for class B.
    pub class: u8,
    /// The priority of its frames.
    pub priority: u8,
    /// The VLAN that its streams use by default.
    pub vid: u16,
}

/// An attribute of MSRP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MsrpAttribute {
    /// Talker Advertise or Talker Failed.
    Talker(TalkerDeclaration),
    /// Listener.
    Listener(StreamId, ListenerDeclaration),
    /// Domain.
    Domain(DomainDeclaration),
}

/// What identifies an attribute of MSRP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MsrpKey {
    /// Talker Advertise of a stream.
    Advertise(StreamId),
    /// Talker Failed of a stream.
    Failed(StreamId),
    /// Listener of a stream.
    Listener(StreamId),
    /// Domain of a class.
    Domain(u8),
}

impl MrpApplication for Msrp {
    type Attribute = MsrpAttribute;
    type Key = MsrpKey;

    const ETHERTYPE: u16 = 0x22ea;
    /// Nearest bridge: no bridge forwards it.
    const DESTINATION: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);
    const VERSION: u8 = 0;
    const HAS_LIST_LENGTH: bool = true;
    const TYPES: &'static [AttributeType] = &[
        AttributeType { number: ADVERTISE, length: 25, has_parameter: false },
        AttributeType { number: FAILED, length: 34, has_parameter: false },
        AttributeType { number: LISTENER, length: 8, has_parameter: true },
        AttributeType { number: DOMAIN, length: 4, has_parameter: false },
    ];

    fn key(attribute: &MsrpAttribute) -> MsrpKey {
        match attribute {
            MsrpAttribute::Talker(talker) if talker.failure.is_some() => {
                MsrpKey::Failed(talker.stream)
            }
            MsrpAttribute::Talker(talker) => MsrpKey::Advertise(talker.stream),
            MsrpAttribute::Listener(stream, _) => MsrpKey::Listener(*stream),
            MsrpAttribute::Domain(domain) => MsrpKey::Domain(domain.class),
        }
    }

    fn type_of(key: MsrpKey) -> u8 {
        match key {
            MsrpKey::Advertise(_) => ADVERTISE,
            MsrpKey::Failed(_) => FAILED,
            MsrpKey::Listener(_) => LISTENER,
            MsrpKey::Domain(_) => DOMAIN,
        }
    }

    fn write(attribute: &MsrpAttribute, into: &mut Vec<u8>) {
        match attribute {
            MsrpAttribute::Talker(talker) => {
                into.extend(talker.stream.0.to_be_bytes());
                into.extend(talker.destination.0);
                into.extend(talker.vid.to_be_bytes());
                into.extend(talker.tspec.max_frame_size.to_be_bytes());
                into.extend(talker.tspec.max_interval_frames.to_be_bytes());
                into.push(talker.priority << 5 | u8::from(talker.rank == Rank::Normal) << 4);
                into.extend(talker.accumulated_latency_ns.to_be_bytes());
                if let Some(failure) = talker.failure {
                    into.extend(failure.bridge.0);
                    into.push(failure.code.0);
                }
            }
            MsrpAttribute::Listener(stream, _) => into.extend(stream.0.to_be_bytes()),
            MsrpAttribute::Domain(DomainDeclaration { class, priority, vid }) => {
                into.extend([*class, *priority]);
                into.extend(vid.to_be_bytes());
            }
        }
    }

    fn parameter(attribute: &MsrpAttribute) -> u8 {
        match attribute {
            MsrpAttribute::Listener(_, ListenerDeclaration::AskingFailed) => 1,
            MsrpAttribute::Listener(_, ListenerDeclaration::Ready) => 2,
            MsrpAttribute::Listener(_, ListenerDeclaration::ReadyFailed) => 3,
            _ => 0,
        }
    }

    fn read(number: u8, first: &[u8], offset: u16, parameter: u8) -> Option<MsrpAttribute> {
        match number {
            ADVERTISE => read_talker(first, offset, None).map(MsrpAttribute::Talker),
            FAILED => {
                let (talker, failure) = first.split_at_checked(25)?;
                let (bridge, code) = failure.split_first_chunk::<8>()?;
                let [code] = code else { return None };
                let (bridge, code) = (BridgeId(*bridge), FailureCode(*code));
                let failure = Some(FailureInformation { bridge, code });
                read_talker(talker, offset, failure).map(MsrpAttribute::Talker)
            }
            LISTENER => {
                let declaration = match parameter {
                    1 => ListenerDeclaration::AskingFailed,
                    2 => ListenerDeclaration::Ready,
                    3 => ListenerDeclaration::ReadyFailed,
                    _ => return None,
                };
                Some(MsrpAttribute::Listener(read_stream(first, offset)?, declaration))
            }
            DOMAIN => {
                let [class, priority, high, low] = *first else { return None };
                let offset = u8::try_from(offset).ok()?;
                let (class, priority) = (class.checked_add(offset)?, priority.checked_add(offset)?);
                let vid = u16::from_be_bytes([high, low]);
                let domain = DomainDeclaration { class, priority, vid };
                (class <= 7 && priority <= 7).then_some(MsrpAttribute::Domain(domain))
            }
            _ => None,
        }
    }

    fn follows(first: &MsrpAttribute, offset: u16, next: &MsrpAttribute) -> bool {
        let stream = |first: StreamId| {
            let low = first.0 as u16;
            low.checked_add(offset).map(|low| StreamId(first.0 & !0xffff | u64::from(low)))
        };
        match (first, next) {
            (MsrpAttribute::Talker(first), MsrpAttribute::Talker(next)) => {
                let [rest @ .., last] = first.destination.0;
                let Some(last) = u8::try_from(offset).ok().and_then(|k| last.checked_add(k)) else {
                    return false;
                };
                let [a, b, c, d, e] = rest;
                let destination = MacAddress([a, b, c, d, e, last]);
                stream(first.stream).is_some_and(|stream| {
                    TalkerDeclaration { stream, destination, ..*first } == *next
                })
            }
            (MsrpAttribute::Listener(first, _), MsrpAttribute::Listener(next, _)) => {
                stream(*first) == Some(*next)
            }
            (MsrpAttribute::Domain(first), MsrpAttribute::Domain(next)) => {
                let plus = |value: u8| u16::from(value) + offset;
                plus(first.class) == u16::from(next.class)
                    && plus(first.priority) == u16::from(next.priority)
                    && first.vid == next.vid
            }
            _ => false,
        }
    }

    fn superseded(key: MsrpKey) -> Option<MsrpKey> {
        match key {
            MsrpKey::Advertise(stream) => Some(MsrpKey::Failed(stream)),
            MsrpKey::Failed(stream) => Some(MsrpKey::Advertise(stream)),
            MsrpKey::Listener(_) | MsrpKey::Domain(_) => None,
        }
    }
}

/// The StreamID `offset` behind the first octets'. Its first six octets are an address: a UniqueID
/// that overflows would make it another station's, so it is no value.
fn read_stream(first: &[u8], offset: u16) -> Option<StreamId> {
    let first = u64::from_be_bytes(*first.first_chunk()?);
    let low = (first as u16).checked_add(offset)?;
    Some(StreamId(first & !0xffff | u64::from(low)))
}

fn read_talker(
    first: &[u8],
    offset: u16,
    failure: Option<FailureInformation>,
) -> Option<TalkerDeclaration> {
    let stream = read_stream(first, offset)?;
    let rest = first.get(8..25)?;
    let [a, b, c, d, e, f, vid @ .., p, l0, l1, l2, l3] = rest else { return None };
    let [v0, v1, s0, s1, i0, i1] = *vid else { return None };
    let destination = plus_address([*a, *b, *c, *d, *e, *f], offset)?;
    let [vid, max_frame_size, max_interval_frames] =
        [[v0, v1], [s0, s1], [i0, i1]].map(u16::from_be_bytes);
    if !crate::mvrp::is_vid(vid) {
        return None;
    }
    Some(TalkerDeclaration {
        stream,
        destination,
        vid,
        tspec: TSpec { max_frame_size, max_interval_frames },
        priority: p >> 5,
        rank: if p & 0x10 == 0 { Rank::Emergency } else { Rank::Normal },
        accumulated_latency_ns: u32::from_be_bytes([*l0, *l1, *l2, *l3]),
        failure,
    })
}

/// The address `offset` behind another, as a number of 48 bits.
pub(crate) fn plus_address(first: [u8; 6], offset: u16) -> Option<MacAddress> {
    let [a, b, c, d, e, f] = first;
    let sum = u64::from_be_bytes([0, 0, a, b, c, d, e, f]) + u64::from(offset);
    let [0, 0, address @ ..] = sum.to_be_bytes() else { return None };
    Some(MacAddress(address))
}
