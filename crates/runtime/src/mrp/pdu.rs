//! PDUs: octets ↔ events of attributes (802.1Q-2018 10.8; for MSRP also 35.2.2).
//!
//! ```text
//! PDU     = version, messages, EndMark
//! message = attribute type, attribute length, [list length], vectors, EndMark
//! vector  = LeaveAll event and count, FirstValue, three-packed events, [four-packed parameters]
//! ```
//!
//! Reading is total: any octets give items, and perhaps a [`PduError`], never a panic, in time and
//! space linear in their number. Items before an error count (10.8.3).

use onbeat_model::units::MacAddress;
use std::fmt::Debug;

/// What one attribute's state machines send (10.8.2.8). In the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeEvent {
    /// Declared, for the first time.
    New,
    /// Declared, and registered here.
    JoinIn,
    /// Registered here, not declared.
    In,
    /// Declared, not registered here.
    JoinMt,
    /// Neither.
    Mt,
    /// No longer declared.
    Lv,
}

impl AttributeEvent {
    /// All, by their numbers.
    pub const ALL: [Self; 6] =
        [Self::New, Self::JoinIn, Self::In, Self::JoinMt, Self::Mt, Self::Lv];

    /// Whether it declares the attribute: registrars register it.
    pub const fn is_declaring(self) -> bool {
        matches!(self, Self::New | Self::JoinIn | Self::JoinMt)
    }
}

/// A type of attributes of an application (10.8.2.2, 10.8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeType {
    /// Its number, not 0.
    pub number: u8,
    /// Octets of its FirstValue.
    pub length: u8,
    /// Whether each value has a four-packed parameter (35.2.2.7.2).
    pub has_parameter: bool,
}

/// An application of MRP: its addresses, its attributes, and how they are encoded.
pub trait MrpApplication: Debug + 'static {
    /// An attribute: what identifies it, and what is declared with it.
    type Attribute: Copy + Eq + Debug + Send;
    /// What identifies an attribute. Ordered by attribute type first.
    type Key: Copy + Ord + Debug + Send;

    /// The EtherType of its PDUs.
    const ETHERTYPE: u16;
    /// Where they go.
    const DESTINATION: MacAddress;
    /// The ProtocolVersion (10.8.2.1).
    const VERSION: u8;
    /// Whether messages have an AttributeListLength (10.8.2.4): only MSRP's do.
    const HAS_LIST_LENGTH: bool;
    /// Its types, by ascending numbers.
    const TYPES: &'static [AttributeType];

    /// What identifies an attribute.
    fn key(attribute: &Self::Attribute) -> Self::Key;
    /// The number of an attribute's type: one of [`MrpApplication::TYPES`].
    fn type_of(key: Self::Key) -> u8;
    /// Appends the FirstValue of a vector that begins with the attribute.
    fn write(attribute: &Self::Attribute, into: &mut Vec<u8>);
    /// The attribute's parameter, 0 to 3; 0 where its type has none.
    fn parameter(_attribute: &Self::Attribute) -> u8 {
        0
    }
    /// The value `offset` behind a FirstValue, with a parameter. `first` has the length of the
    /// type. `None` for what is no value: the reader passes over it.
    fn read(number: u8, first: &[u8], offset: u16, parameter: u8) -> Option<Self::Attribute>;
    /// Whether a vector that begins with `first` may have `next` as its value `offset`. Readers
    /// disagree about carries, so a vector stays within the last octets of its numbers.
    fn follows(first: &Self::Attribute, offset: u16, next: &Self::Attribute) -> bool;
    /// The attribute that a declaration of this one replaces at once (35.2.6).
    fn superseded(_key: Self::Key) -> Option<Self::Key> {
        None
    }
}

/// What a PDU says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MrpItem<T> {
    /// The sender has left all attributes of the type with this number (10.8.2.6).
    LeaveAll(u8),
    /// An event of an attribute.
    Event(AttributeEvent, T),
}

/// Why the rest of a PDU is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PduError {
    /// No octet at all.
    #[error("the PDU is empty")]
    Empty,
    /// Fewer octets than a field has.
    #[error("the PDU ends within a field")]
    Short,
    /// Not a type of the application, in a version that we know.
    #[error("attribute type {0} is unknown")]
    AttributeType(u8),
    /// Not the length that the type has.
    #[error("attribute type {0} with a length of {1} octets")]
    AttributeLength(u8, u8),
    /// A list length that is not that of the list.
    #[error("the list length is not that of the list")]
    ListLength,
    /// Neither null nor LeaveAll.
    #[error("LeaveAll event {0} is unknown")]
    LeaveAllEvent(u8),
    /// An octet of three events above 215.
    #[error("an octet of events is {0}, more than 215")]
    Events(u8),
}

/// Bits of a vector header that count its values (10.8.2.5).
const COUNT: u16 = 0x1fff;
/// The most values of a vector.
const VALUES_MAX: u16 = COUNT;
/// The largest octet that packs three events: ((5·6) + 5)·6 + 5.
const EVENTS_MAX: u8 = 215;

/// Takes octets off the front.
struct PduReader<'a>(&'a [u8]);

impl<'a> PduReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], PduError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(PduError::Short)?;
        self.0 = rest;
        Ok(taken)
    }
    fn u8(&mut self) -> Result<u8, PduError> {
        self.take(1).map(|octets| octets[0])
    }
    fn u16(&mut self) -> Result<u16, PduError> {
        self.take(2).map(|octets| u16::from_be_bytes([octets[0], octets[1]]))
    }
    /// Takes an EndMark; the end of the PDU is one too (10.8.3.1).
    fn end_mark(&mut self) -> bool {
        let ends = matches!(self.0, [] | [0, 0, ..]);
        if ends {
            self.0 = self.0.get(2..).unwrap_or_default();
        }
        ends
    }
}

/// Reads a PDU, without an Ethernet header, and gives its items one by one.
///
/// # Errors
/// Why the rest was discarded; the items before that have been given.
pub fn read<A: MrpApplication>(
    pdu: &[u8],
    take: &mut dyn FnMut(MrpItem<A::Attribute>),
) -> Result<(), PduError> {
    let mut reader = PduReader(pdu);
    let version = reader.u8().map_err(|_| PduError::Empty)?;
    let is_newer = version > A::VERSION;
    while !reader.end_mark() {
        let (number, length) = (reader.u8()?, reader.u8()?);
        let known = A::TYPES.iter().find(|known| known.number == number);
        let (mut list, listed) = match A::HAS_LIST_LENGTH {
            true => {
                let said = usize::from(reader.u16()?);
                let there = said.min(reader.0.len());
                (PduReader(reader.take(there)?), Some(there == said))
            }
            false => (PduReader(std::mem::take(&mut reader.0)), None),
        };
        match known {
            Some(known) if known.length == length => {
                vectors::<A>(&mut list, *known, is_newer, take)?
            }
            // A later version may have more in it: its list is passed over (10.8.3.5).
            _ if is_newer && listed.is_some() => list.0 = &[],
            _ if is_newer => pass_over(&mut list, length)?,
            Some(_) => return Err(PduError::AttributeLength(number, length)),
            None => return Err(PduError::AttributeType(number)),
        }
        match listed {
            None => reader.0 = list.0,
            Some(is_whole) if is_whole && list.0.is_empty() => {}
            Some(_) => return Err(PduError::ListLength),
        }
    }
    Ok(())
}

/// Passes over the vectors of an unknown type without a list length: events are three-packed.
fn pass_over(list: &mut PduReader<'_>, length: u8) -> Result<(), PduError> {
    while !list.end_mark() {
        let count = usize::from(list.u16()? & COUNT);
        list.take(usize::from(length) + count.div_ceil(3))?;
    }
    Ok(())
}

fn vectors<A: MrpApplication>(
    list: &mut PduReader<'_>,
    known: AttributeType,
    is_newer: bool,
    take: &mut dyn FnMut(MrpItem<A::Attribute>),
) -> Result<(), PduError> {
    while !list.end_mark() {
        let header = list.u16()?;
        let (leave_all, count) = ((header >> 13) as u8, header & COUNT);
        let first = list.take(known.length.into())?;
        // Both are there before a single event counts: no count asks for more than the PDU has.
        let events = list.take(usize::from(count).div_ceil(3))?;
        let parameters = match known.has_parameter {
            true => list.take(usize::from(count).div_ceil(4))?,
            false => &[],
        };
        match leave_all {
            0 => {}
            1 => take(MrpItem::LeaveAll(known.number)),
            _ if is_newer => continue,
            other => return Err(PduError::LeaveAllEvent(other)),
        }
        for offset in 0..count {
            let at = usize::from(offset);
            let packed = events[at / 3];
            if packed > EVENTS_MAX {
                match is_newer {
                    true => break,
                    false => return Err(PduError::Events(packed)),
                }
            }
            let place = [36, 6, 1][at % 3];
            let event = AttributeEvent::ALL[usize::from(packed / place % 6)];
            let parameter = match known.has_parameter {
                true => parameters[at / 4] >> (6 - 2 * (at % 4)) & 3,
                false => 0,
            };
            // Ignore: the value fills a gap (35.2.2.7.2).
            if known.has_parameter && parameter == 0 {
                continue;
            }
            if let Some(value) = A::read(known.number, first, offset, parameter) {
                take(MrpItem::Event(event, value));
            }
        }
    }
    Ok(())
}

/// Builds one PDU. Values that follow each other share a vector.
#[derive(Debug)]
pub struct PduWriter<A: MrpApplication> {
    limit: usize,
    /// How long the PDU is, with all EndMarks.
    length: usize,
    messages: Vec<OpenMessage<A>>,
}

#[derive(Debug)]
struct OpenMessage<A: MrpApplication> {
    of: AttributeType,
    leaves_all: bool,
    vectors: Vec<OpenVector<A>>,
}

#[derive(Debug)]
struct OpenVector<A: MrpApplication> {
    first: A::Attribute,
    count: u16,
    events: Vec<u8>,
    parameters: Vec<u8>,
}

impl<A: MrpApplication> PduWriter<A> {
    /// A PDU of at most `limit` octets.
    ///
    /// # Panics
    /// When not even one LeaveAll of each type would fit.
    pub fn new(limit: usize) -> Self {
        let of_type = |known: &AttributeType| Self::message() + 4 + usize::from(known.length);
        let least = 3 + A::TYPES.iter().map(of_type).sum::<usize>();
        assert!(limit >= least, "a limit of {limit} octets");
        Self { limit, length: 3, messages: Vec::new() }
    }

    /// Octets of a message without vectors: type, lengths, EndMark.
    const fn message() -> usize {
        4 + if A::HAS_LIST_LENGTH { 2 } else { 0 }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a LeaveAll of each type. It is to be the first in a PDU: there is room for it.
    pub fn leave_all(&mut self) {
        debug_assert!(self.is_empty(), "LeaveAll comes first");
        for known in A::TYPES {
            self.length += Self::message() + 2 + usize::from(known.length);
            self.messages.push(OpenMessage { of: *known, leaves_all: true, vectors: Vec::new() });
        }
    }

    /// Adds an event. False if the PDU has no room for it: it is as it was.
    pub fn push(&mut self, event: AttributeEvent, attribute: &A::Attribute) -> bool {
        let number = A::type_of(A::key(attribute));
        let at = self.messages.iter().position(|message| message.of.number == number);
        let Some(known) = A::TYPES.iter().find(|known| known.number == number) else {
            unreachable!("an attribute has one of the types")
        };
        let open = at.and_then(|at| self.messages[at].vectors.last());
        let continues = open.is_some_and(|vector| {
            vector.count < VALUES_MAX && A::follows(&vector.first, vector.count, attribute)
        });
        let count = open.filter(|_| continues).map_or(0, |vector| usize::from(vector.count));
        let mut more = usize::from(count % 3 == 0);
        more += usize::from(known.has_parameter && count % 4 == 0);
        // The vector without values that a LeaveAll has is used by the first value.
        let has_vector = at
            .is_some_and(|at| self.messages[at].leaves_all && self.messages[at].vectors.is_empty());
        if !continues && !has_vector {
            more += 2 + usize::from(known.length);
        }
        if at.is_none() {
            more += Self::message();
        }
        if self.length + more > self.limit {
            return false;
        }
        self.length += more;
        let at = at.unwrap_or_else(|| {
            self.messages.push(OpenMessage { of: *known, leaves_all: false, vectors: Vec::new() });
            self.messages.len() - 1
        });
        let vectors = &mut self.messages[at].vectors;
        if !continues {
            let (events, parameters) = (Vec::new(), Vec::new());
            vectors.push(OpenVector { first: *attribute, count: 0, events, parameters });
        }
        if let Some(vector) = vectors.last_mut() {
            vector.push(event, known.has_parameter.then(|| A::parameter(attribute)));
        }
        true
    }

    /// The octets. Both kinds of EndMarks are there, though the last ones could be left out.
    pub fn finish(self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.length);
        octets.push(A::VERSION);
        for message in &self.messages {
            octets.extend([message.of.number, message.of.length]);
            let list_at = octets.len();
            if A::HAS_LIST_LENGTH {
                octets.extend([0; 2]);
            }
            message.put(&mut octets);
            if A::HAS_LIST_LENGTH {
                let length = (octets.len() - list_at - 2) as u16;
                octets[list_at..list_at + 2].copy_from_slice(&length.to_be_bytes());
            }
        }
        octets.extend([0; 2]);
        debug_assert_eq!(octets.len(), self.length);
        octets
    }
}

impl<A: MrpApplication> OpenMessage<A> {
    /// Appends the vectors and the EndMark.
    fn put(&self, octets: &mut Vec<u8>) {
        let mut leave_all = u16::from(self.leaves_all) << 13;
        if self.vectors.is_empty() {
            octets.extend(leave_all.to_be_bytes());
            octets.resize(octets.len() + usize::from(self.of.length), 0);
        }
        for vector in &self.vectors {
            octets.extend((leave_all | vector.count).to_be_bytes());
            leave_all = 0;
            A::write(&vector.first, octets);
            octets.extend_from_slice(&vector.events);
            octets.extend_from_slice(&vector.parameters);
        }
        octets.extend([0; 2]);
    }
}

impl<A: MrpApplication> OpenVector<A> {
    fn push(&mut self, event: AttributeEvent, parameter: Option<u8>) {
        let at = usize::from(self.count);
        if at % 3 == 0 {
            self.events.push(0);
        }
        // What is not used of an octet stays 0.
        if let Some(octet) = self.events.last_mut() {
            *octet += event as u8 * [36, 6, 1][at % 3];
        }
        if let Some(parameter) = parameter {
            if at % 4 == 0 {
                self.parameters.push(0);
            }
            if let Some(octet) = self.parameters.last_mut() {
                *octet |= parameter << (6 - 2 * (at % 4));
            }
        }
        self.count += 1;
    }
}
