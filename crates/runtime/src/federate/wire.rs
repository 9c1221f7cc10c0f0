//! Messages between federates, as reactor-c's decentralised coordination has them on the wire
//! (`net_common.h`): a header, all of it little-endian, and the value.
//!
//! | type | | octets of the header |
//! | --- | --- | --- |
//! | 17 | a message of a physical connection | type 1, port 2, federate 2, length 4 |
//! | 18 | a message with a tag | the same, then time 8, microstep 4 |
//! | 23 | an input is absent at a tag | type 1, port 2, federate 2, time 8, microstep 4 |

use onbeat_model::federation::Tag;
use onbeat_model::time::Span;
use std::ops::Range;
use thiserror::Error;

/// Octets of the header of a message with a tag: the longest.
pub const HEADER: usize = 21;

const PHYSICAL: u8 = 17;
const TAGGED: u8 = 18;
const ABSENT: u8 = 23;

const TYPE: usize = 0;
const PORT: Range<usize> = 1..3;
const FEDERATE: Range<usize> = 3..5;
const LENGTH: Range<usize> = 5..9;
const TIME: Range<usize> = 9..17;
const MICROSTEP: Range<usize> = 17..21;
const ABSENT_TIME: Range<usize> = 5..13;
const ABSENT_MICROSTEP: Range<usize> = 13..17;
const PHYSICAL_HEADER: usize = LENGTH.end;
const ABSENT_HEADER: usize = ABSENT_MICROSTEP.end;

/// A message between federates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FederateMessage<'a> {
    /// The reader's port.
    pub port: u16,
    /// The reader.
    pub federate: u16,
    /// What is said.
    pub content: Content<'a>,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A value without a tag: that of the reader's clock counts.
    Physical(&'a [u8]),
    /// A value at a tag.
    Tagged(Tag, &'a [u8]),
    /// There is no value at this tag, nor at any before it that was not sent.
    Absent(Tag),
}

/// Why octets are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageError {
    /// They end within the header.
    #[error("the message ends within its header")]
    Header,
    /// The first octet is none of the three types.
    #[error("no message has type {0}")]
    Type(u8),
    /// They end within the value.
    #[error("the message ends within its value")]
    Length,
}

impl<'a> FederateMessage<'a> {
    /// Reads a message, and gives what is behind it.
    ///
    /// # Errors
    /// When the octets are not, or not yet, a whole message.
    pub fn parse(octets: &'a [u8]) -> Result<(Self, &'a [u8]), MessageError> {
        let kind = *octets.get(TYPE).ok_or(MessageError::Header)?;
        let (content, rest) = match kind {
            PHYSICAL => {
                let (value, rest) = value(octets, PHYSICAL_HEADER)?;
                (Content::Physical(value), rest)
            }
            TAGGED => {
                let (value, rest) = value(octets, HEADER)?;
                (Content::Tagged(tag(octets, TIME, MICROSTEP)?, value), rest)
            }
            ABSENT => {
                let tag = tag(octets, ABSENT_TIME, ABSENT_MICROSTEP)?;
                (Content::Absent(tag), octets.get(ABSENT_HEADER..).ok_or(MessageError::Header)?)
            }
            other => return Err(MessageError::Type(other)),
        };
        let port = u16::from_le_bytes(array(octets, PORT)?);
        let federate = u16::from_le_bytes(array(octets, FEDERATE)?);
        Ok((Self { port, federate, content }, rest))
    }

    /// How many octets the message has.
    pub fn octets(&self) -> usize {
        match self.content {
            Content::Physical(value) => PHYSICAL_HEADER + value.len(),
            Content::Tagged(_, value) => HEADER + value.len(),
            Content::Absent(_) => ABSENT_HEADER,
        }
    }

    /// Writes the message, and gives the room behind it.
    ///
    /// # Panics
    /// When `into` is shorter than [`FederateMessage::octets`], or the value has 2³² octets or
    /// more.
    pub fn emit<'b>(&self, into: &'b mut [u8]) -> &'b mut [u8] {
        let (own, rest) = into.split_at_mut(self.octets());
        own[PORT].copy_from_slice(&self.port.to_le_bytes());
        own[FEDERATE].copy_from_slice(&self.federate.to_le_bytes());
        let length = |value: &[u8]| {
            u32::try_from(value.len()).expect("a value of less than 2³² octets").to_le_bytes()
        };
        match self.content {
            Content::Physical(value) => {
                own[TYPE] = PHYSICAL;
                own[LENGTH].copy_from_slice(&length(value));
                own[PHYSICAL_HEADER..].copy_from_slice(value);
            }
            Content::Tagged(tag, value) => {
                own[TYPE] = TAGGED;
                own[LENGTH].copy_from_slice(&length(value));
                own[TIME].copy_from_slice(&tag.time.as_ns().to_le_bytes());
                own[MICROSTEP].copy_from_slice(&tag.microstep.to_le_bytes());
                own[HEADER..].copy_from_slice(value);
            }
            Content::Absent(tag) => {
                own[TYPE] = ABSENT;
                own[ABSENT_TIME].copy_from_slice(&tag.time.as_ns().to_le_bytes());
                own[ABSENT_MICROSTEP].copy_from_slice(&tag.microstep.to_le_bytes());
            }
        }
        rest
    }
}

/// The value behind a header of so many octets, and what is behind that.
fn value(octets: &[u8], header: usize) -> Result<(&[u8], &[u8]), MessageError> {
    let length = u32::from_le_bytes(array(octets, LENGTH)?) as usize;
    let behind = octets.get(header..).ok_or(MessageError::Header)?;
    behind.split_at_checked(length).ok_or(MessageError::Length)
}

fn tag(octets: &[u8], time: Range<usize>, microstep: Range<usize>) -> Result<Tag, MessageError> {
    let time = Span::from_ns(i64::from_le_bytes(array(octets, time)?));
    Ok(Tag { time, microstep: u32::from_le_bytes(array(octets, microstep)?) })
}

fn array<const N: usize>(octets: &[u8], range: Range<usize>) -> Result<[u8; N], MessageError> {
    let part = octets.get(range).and_then(|part| part.try_into().ok());
    part.ok_or(MessageError::Header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, port: u16, federate: u16, tag: Tag, value: &[u8]) -> FederateMessage<'_> {
        let content = match kind {
            0 => Content::Physical(value),
            1 => Content::Tagged(tag, value),
            _ => Content::Absent(tag),
        };
        FederateMessage { port, federate, content }
    }

    #[test]
    fn the_header_of_a_tagged_message_is_that_of_reactor_c() {
        let tag = Tag { time: Span::from_ns(0x0102_0304_0506_0708), microstep: 9 };
        let sent = message(1, 0x0a0b, 0x0c0d, tag, b"v");
        let mut octets = [0; HEADER + 1];
        assert!(sent.emit(&mut octets).is_empty());
        let expected =
            [18, 0x0b, 0x0a, 0x0d, 0x0c, 1, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, b'v'];
        assert_eq!(octets, expected);
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_parsed_and_no_shorter_part_is_a_message(
            kind in 0u8..3,
            port: u16,
            federate: u16,
            time: i64,
            microstep: u32,
            value in proptest::collection::vec(any::<u8>(), 0..40),
            behind in 0usize..5,
        ) {
            let tag = Tag { time: Span::from_ns(time), microstep };
            let sent = message(kind, port, federate, tag, &value);
            let mut octets = vec![0; sent.octets() + behind];
            prop_assert_eq!(sent.emit(&mut octets).len(), behind);
            let (received, rest) = FederateMessage::parse(&octets).unwrap();
            prop_assert_eq!(received, sent);
            prop_assert_eq!(rest.len(), behind);
            for cut in 0..sent.octets() {
                prop_assert!(FederateMessage::parse(&octets[..cut]).is_err());
            }
        }

        #[test]
        fn any_octets_are_a_message_or_an_error(
            octets in proptest::collection::vec(any::<u8>(), 0..64),
            kind in 16u8..25,
        ) {
            let _ = FederateMessage::parse(&octets);
            let with_kind: Vec<u8> = std::iter::once(kind).chain(octets).collect();
            if let Ok((message, rest)) = FederateMessage::parse(&with_kind) {
                let mut again = vec![0; message.octets()];
                message.emit(&mut again);
                prop_assert_eq!([&again, rest].concat(), with_kind);
            }
        }
    }
}
