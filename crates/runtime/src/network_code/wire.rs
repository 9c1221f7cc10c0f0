//! The frames of stations: data, and the beginning of a round (`docs/network-code.md`, "Frames").
//!
//! | octets | data | beginning of a round |
//! | --- | --- | --- |
//! | 1 | 0 | 0 |
//! | 1 | message | 0 |
//! | 2 | length in words | 1 |
//! | 4 each | words | round |
//!
//! All parsing is total: any octets give a frame or a [`FrameError`], never a panic.

use super::instruction::MessageId;
use super::timing::FRAME_WORDS;
use crate::wire::ethernet::{ETHERNET, Ethernet};
use crate::wire::vlan::{ETHERTYPE_VLAN, TAG, Tag};
use onbeat_model::units::MacAddress;
use std::fmt;
use std::ops::Range;

/// Where all frames of stations go: a group address, locally administered.
pub const GROUP: MacAddress = MacAddress([0x03, 0x4f, 0x42, 0x4e, 0x43, 0x00]);
/// EtherType of data: the first for local experiments.
pub const ETHERTYPE_DATA: u16 = 0x88b5;
/// EtherType of the beginning of a round: the second for local experiments.
pub const ETHERTYPE_ROUND: u16 = 0x88b6;
/// The longest frame without its FCS, with a tag.
pub const FRAME_MAX: usize = ETHERNET + TAG + HEADER + 4 * FRAME_WORDS as usize;

/// Octets from the EtherType to the words.
const HEADER: usize = 4;
const FLAGS: usize = 0;
const MESSAGE: usize = 1;
const LENGTH: Range<usize> = 2..4;
/// The shortest frame without its FCS and without a tag; a tag makes it longer.
const SHORTEST: usize = 60;

/// Why octets are no frame of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too short for the headers, or longer than a frame may be.
    #[error("the frame's length is not that of a station's frame")]
    Size,
    /// It goes to another address.
    #[error("the frame does not go to the group of stations")]
    Destination,
    /// Neither data nor the beginning of a round.
    #[error("the EtherType is not one of stations")]
    EtherType,
    /// A field that has to be 0 is not.
    #[error("a reserved field is not 0")]
    Reserved,
    /// The length is 0, more than a frame carries or than follows, or not 1 where a round begins.
    #[error("the length is not that of the words")]
    Length,
}

/// What a frame's VLAN tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// VLAN identifier, 12 bits.
    pub vlan: u16,
    /// Priority code point, 3 bits.
    pub pcp: u8,
}

/// A frame of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationFrame<'a> {
    /// The sending station's address.
    pub source: MacAddress,
    /// Its tag, if it has one.
    pub tag: Option<VlanTag>,
    /// What it carries.
    pub content: FrameContent<'a>,
}

/// What a station's frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameContent<'a> {
    /// A message.
    Data {
        /// Which one.
        message: MessageId,
        /// Its words.
        words: Words<'a>,
    },
    /// The beginning of a round.
    Round(u32),
}

/// Words as they are in a frame, 1 to [`FRAME_WORDS`]: each with its most significant octet first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a>(&'a [[u8; 4]]);

impl<'a> Words<'a> {
    /// How many.
    pub fn count(self) -> usize {
        self.0.len()
    }

    /// The words, in their order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.0.iter().map(|word| u32::from_be_bytes(*word))
    }

    /// Copies the first words into `into`, as many as it has room for, and gives those.
    pub fn copy_to(self, into: &mut [u32]) -> &[u32] {
        let count = self.count().min(into.len());
        for (to, word) in into.iter_mut().zip(self.iter()) {
            *to = word;
        }
        &into[..count]
    }
}

impl<'a> StationFrame<'a> {
    /// Reads a frame without its FCS. It may have one 802.1Q tag; padding behind the words is
    /// allowed, whatever is in it.
    pub fn parse(octets: &'a [u8]) -> Result<Self, FrameError> {
        if octets.len() > FRAME_MAX {
            return Err(FrameError::Size);
        }
        let (ethernet, mut rest) = Ethernet::parse(octets).map_err(|_| FrameError::Size)?;
        if ethernet.destination != GROUP {
            return Err(FrameError::Destination);
        }
        let (mut ethertype, mut tag) = (ethernet.ethertype, None);
        if ethertype == ETHERTYPE_VLAN {
            let (found, behind) = Tag::parse(rest).map_err(|_| FrameError::Size)?;
            (ethertype, rest) = (found.ethertype, behind);
            tag = Some(VlanTag { vlan: found.vlan, pcp: found.pcp });
        }
        let content = match ethertype {
            ETHERTYPE_DATA => FrameContent::data(rest)?,
            ETHERTYPE_ROUND => FrameContent::round(rest)?,
            _ => return Err(FrameError::EtherType),
        };
        Ok(Self { source: ethernet.source, tag, content })
    }

    fn layers(&self) -> (Ethernet, Option<Tag>) {
        let ethertype = match self.content {
            FrameContent::Data { .. } => ETHERTYPE_DATA,
            FrameContent::Round(_) => ETHERTYPE_ROUND,
        };
        layers(self.source, self.tag, ethertype)
    }
}

impl<'a> FrameContent<'a> {
    fn data(octets: &'a [u8]) -> Result<Self, FrameError> {
        let (header, rest) = header(octets)?;
        if header[FLAGS] != 0 {
            return Err(FrameError::Reserved);
        }
        let length = length(header);
        let words = rest.as_chunks().0.get(..usize::from(length)).ok_or(FrameError::Length)?;
        if length == 0 || length > FRAME_WORDS {
            return Err(FrameError::Length);
        }
        Ok(Self::Data { message: MessageId(header[MESSAGE]), words: Words(words) })
    }

    fn round(octets: &'a [u8]) -> Result<Self, FrameError> {
        let (header, rest) = header(octets)?;
        if header[FLAGS] != 0 || header[MESSAGE] != 0 {
            return Err(FrameError::Reserved);
        }
        match rest.first_chunk() {
            Some(round) if length(header) == 1 => Ok(Self::Round(u32::from_be_bytes(*round))),
            _ => Err(FrameError::Length),
        }
    }
}

fn header(octets: &[u8]) -> Result<(&[u8; HEADER], &[u8]), FrameError> {
    octets.split_first_chunk().ok_or(FrameError::Size)
}

fn length(header: &[u8; HEADER]) -> u16 {
    u16::from_be_bytes([header[LENGTH.start], header[LENGTH.start + 1]])
}

fn layers(source: MacAddress, tag: Option<VlanTag>, protocol: u16) -> (Ethernet, Option<Tag>) {
    let ethertype = if tag.is_some() { ETHERTYPE_VLAN } else { protocol };
    let tag = tag.map(|VlanTag { vlan, pcp }| Tag { vlan, pcp, ethertype: protocol });
    (Ethernet { destination: GROUP, source, ethertype }, tag)
}

impl fmt::Display for StationFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ethernet, tag) = self.layers();
        write!(f, "{ethernet} | ")?;
        tag.map_or(Ok(()), |tag| write!(f, "{tag} | "))?;
        match self.content {
            FrameContent::Data { message, words } => {
                write!(f, "message {}, {} words", message.0, words.count())
            }
            FrameContent::Round(round) => write!(f, "round {round}"),
        }
    }
}

/// Writes a data frame without its FCS into `into`, padded to the shortest length, and returns how
/// long it is.
///
/// # Panics
/// When there is no word or more than [`FRAME_WORDS`], or `into` is shorter than the frame.
pub fn emit_data(
    source: MacAddress,
    tag: Option<VlanTag>,
    message: MessageId,
    words: &[u32],
    into: &mut [u8],
) -> usize {
    assert!((1..=usize::from(FRAME_WORDS)).contains(&words.len()), "{} words", words.len());
    emit(layers(source, tag, ETHERTYPE_DATA), message.0, words, into)
}

/// Writes the beginning of a round likewise.
///
/// # Panics
/// When `into` is shorter than the frame.
pub fn emit_round(source: MacAddress, tag: Option<VlanTag>, round: u32, into: &mut [u8]) -> usize {
    emit(layers(source, tag, ETHERTYPE_ROUND), 0, &[round], into)
}

fn emit(
    (ethernet, tag): (Ethernet, Option<Tag>),
    message: u8,
    words: &[u32],
    into: &mut [u8],
) -> usize {
    let tagged = if tag.is_some() { TAG } else { 0 };
    let length = ETHERNET + tagged + (HEADER + 4 * words.len()).max(SHORTEST - ETHERNET);
    let rest = ethernet.emit(&mut into[..length]);
    let rest = match tag {
        Some(tag) => tag.emit(rest),
        None => rest,
    };
    let (header, rest) = rest.split_at_mut(HEADER);
    header[FLAGS] = 0;
    header[MESSAGE] = message;
    header[LENGTH].copy_from_slice(&(words.len() as u16).to_be_bytes());
    let (room, padding) = rest.split_at_mut(4 * words.len());
    for (to, word) in room.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.to_be_bytes();
    }
    padding.fill(0);
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCE: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);
    const TAGGED: Option<VlanTag> = Some(VlanTag { vlan: 2, pcp: 6 });

    #[test]
    fn data_has_these_octets() {
        let mut octets = [0xff; FRAME_MAX];
        let length = emit_data(SOURCE, None, MessageId(9), &[0x0102_0304, 5], &mut octets);
        let expected: Vec<u8> = [
            &[0x03, 0x4f, 0x42, 0x4e, 0x43, 0x00][..], // destination
            &[0x02, 0, 0, 0, 0, 7],                    // source
            &[0x88, 0xb5, 0, 9, 0, 2],                 // flags, message, length
            &[1, 2, 3, 4, 0, 0, 0, 5],
            &[0; 34], // padding to 60 octets
        ]
        .concat();
        assert_eq!(&octets[..length], &expected);
        let frame = StationFrame::parse(&expected).expect("a frame");
        let line = "02:00:00:00:00:07 > 03:4f:42:4e:43:00, EtherType 0x88b5 | message 9, 2 words";
        assert_eq!(frame.to_string(), line);
    }

    #[test]
    fn the_beginning_of_a_round_has_these_octets_behind_a_tag() {
        let mut octets = [0xff; FRAME_MAX];
        let length = emit_round(SOURCE, TAGGED, 0x0a0b_0c0d, &mut octets);
        let expected: Vec<u8> = [
            &[0x03, 0x4f, 0x42, 0x4e, 0x43, 0x00][..], // destination
            &[0x02, 0, 0, 0, 0, 7],                    // source
            &[0x81, 0x00, 0xc0, 0x02, 0x88, 0xb6],     // PCP 6, VID 2
            &[0, 0, 0, 1, 0x0a, 0x0b, 0x0c, 0x0d],
            &[0; 38], // padding to 64 octets
        ]
        .concat();
        assert_eq!(&octets[..length], &expected);
        let frame = StationFrame::parse(&expected).expect("a frame");
        assert_eq!(frame.content, FrameContent::Round(0x0a0b_0c0d));
        let line = "02:00:00:00:00:07 > 03:4f:42:4e:43:00, EtherType 0x8100 | VLAN 2, PCP 6, \
                    EtherType 0x88b6 | round 168496141";
        assert_eq!(frame.to_string(), line);
    }

    #[test]
    fn frames_of_the_wrong_shape_are_refused_each_for_its_reason() {
        let mut room = [0; FRAME_MAX];
        let length = emit_data(SOURCE, TAGGED, MessageId(9), &[7; 20], &mut room);
        let data = room[..length].to_vec();
        let length = emit_round(SOURCE, None, 3, &mut room);
        let round = room[..length].to_vec();
        let broken = |good: &[u8], at: usize, value: u8| {
            let mut bad = good.to_vec();
            bad[at] = value;
            bad
        };
        for (bad, reason) in [
            (vec![0; FRAME_MAX + 1], FrameError::Size),
            (data[..13].to_vec(), FrameError::Size),
            (data[..17].to_vec(), FrameError::Size),
            (data[..21].to_vec(), FrameError::Size),
            (broken(&data, 0, 1), FrameError::Destination),
            (broken(&data, 12, 0x08), FrameError::EtherType),
            (broken(&data, 17, 0xb7), FrameError::EtherType),
            (broken(&data, 18, 1), FrameError::Reserved),
            (broken(&data, 21, 0), FrameError::Length),
            (broken(&data, 21, 21), FrameError::Length),
            (broken(&data, 20, 0xff), FrameError::Length),
            (data[..data.len() - 1].to_vec(), FrameError::Length),
            (round[..17].to_vec(), FrameError::Size),
            (round[..21].to_vec(), FrameError::Length),
            (broken(&round, 14, 1), FrameError::Reserved),
            (broken(&round, 15, 1), FrameError::Reserved),
            (broken(&round, 17, 0), FrameError::Length),
            (broken(&round, 17, 2), FrameError::Length),
        ] {
            assert_eq!(StationFrame::parse(&bad), Err(reason), "{bad:02x?}");
        }
        // More words than the standard lets a frame have, though they are there.
        let mut long = broken(&data, 20, (375u16 >> 8) as u8);
        long[21] = 375u16 as u8;
        let untagged = [&long[..12], &long[16..22], &[0; 1500]].concat();
        assert_eq!(StationFrame::parse(&untagged), Err(FrameError::Length));
    }

    #[test]
    fn words_are_copied_as_far_as_there_is_room() {
        let mut octets = [0; FRAME_MAX];
        let length = emit_data(SOURCE, None, MessageId(1), &[4, 5, 6], &mut octets);
        let frame = StationFrame::parse(&octets[..length]).expect("a frame");
        let FrameContent::Data { words, .. } = frame.content else { panic!("{frame}") };
        assert_eq!(words.copy_to(&mut [9; 2]), [4, 5]);
        assert_eq!(words.copy_to(&mut [9; 4]), [4, 5, 6]);
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_parsed_back(
            words in proptest::collection::vec(any::<u32>(), 1..=374),
            message: u8,
            round: u32,
            tag in proptest::option::of((0u16..4096, 0u8..8)),
        ) {
            let tag = tag.map(|(vlan, pcp)| VlanTag { vlan, pcp });
            let mut octets = [0xff; FRAME_MAX];
            let length = emit_data(SOURCE, tag, MessageId(message), &words, &mut octets);
            let frame = StationFrame::parse(&octets[..length]).expect("a frame");
            prop_assert_eq!((frame.source, frame.tag), (SOURCE, tag));
            let FrameContent::Data { message: read, words: data } = frame.content else {
                panic!("{frame}")
            };
            prop_assert_eq!(read, MessageId(message));
            prop_assert_eq!(data.iter().collect::<Vec<_>>(), words);
            let length = emit_round(SOURCE, tag, round, &mut octets);
            let frame = StationFrame::parse(&octets[..length]).expect("a frame");
            let content = FrameContent::Round(round);
            prop_assert_eq!(frame, StationFrame { source: SOURCE, tag, content });
        }

        #[test]
        fn no_octets_make_the_parser_panic(
            octets in proptest::collection::vec(any::<u8>(), 0..1600),
        ) {
            let _ = StationFrame::parse(&octets);
        }

        #[test]
        fn no_mutation_of_a_good_frame_makes_the_parser_panic(
            at in 0usize..64, value: u8, cut in 0usize..60, tagged: bool,
        ) {
            let mut octets = [0; FRAME_MAX];
            let tag = TAGGED.filter(|_| tagged);
            let length = emit_data(SOURCE, tag, MessageId(3), &[1; 11], &mut octets);
            octets[at] = value;
            if let Ok(frame) = StationFrame::parse(&octets[..length - cut])
                && let FrameContent::Data { words, .. } = frame.content
            {
                prop_assert!((1..=11).contains(&words.count()));
            }
        }
    }
}
