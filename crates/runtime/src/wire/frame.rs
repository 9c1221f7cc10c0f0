//! The frame of a network channel: Ethernet II, one 802.1Q tag, a redundancy tag if the channel is
//! replicated, and a data unit ([`Pdu`]).

use super::avtp::ETHERTYPE_AVTP;
use super::ethernet::{ETHERNET, Ethernet};
use super::rtag::{ETHERTYPE_R_TAG, R_TAG, RTag};
use super::vlan::{ETHERTYPE_VLAN, TAG, Tag};
use super::{Pdu, STREAM_HEADER, WireError};
use onbeat_model::units::{MacAddress, StreamId};
use std::fmt;

/// Octets before the data unit in a tagged frame without a redundancy tag.
pub const TAGGED: usize = ETHERNET + TAG;
/// Octets before the payload in such a frame.
pub const HEADERS: usize = TAGGED + STREAM_HEADER;
/// The longest frame without its FCS.
pub const MAX_FRAME: usize = 1518;
/// The shortest tagged frame without its FCS; shorter payloads are padded with zeros.
pub const MIN_FRAME: usize = 64;

/// The fields of a frame that vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// The sending port's address.
    pub source: MacAddress,
    /// VLAN identifier, 12 bits.
    pub vlan: u16,
    /// Priority code point, 3 bits.
    pub pcp: u8,
    /// The number in the frame's redundancy tag, if it has one.
    pub r_tag: Option<u16>,
    /// Counts messages, wrapping after 65,535; where [`Header::instance`] is 0, after 255.
    pub number: u16,
    /// Tells one start of the talker from another; 0 where the talker does not say it, as older
    /// ones. Ours, like the upper half of the number and [`Header::meeting`], in fields that the
    /// standard leaves to each format.
    pub instance: u8,
    /// The talker's clock is not synchronised.
    pub uncertain: bool,
    /// Which stream.
    pub stream_id: StreamId,
    /// Lower 32 bits of the capture time in nanoseconds.
    pub timestamp: u32,
    /// In a rendezvous, [`crate::meeting::Word`]; else 0.
    pub meeting: u32,
}

impl Header {
    /// Octets before the data unit.
    #[inline]
    pub const fn unit_at(&self) -> usize {
        TAGGED + if self.r_tag.is_some() { R_TAG } else { 0 }
    }
}

/// A parsed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header's fields.
    pub header: Header,
    /// The stream data: the message, and its trailer if the channel has one.
    pub payload: &'a [u8],
}

/// Splits an Ethernet frame without its FCS into its first header and the octets of the data unit.
/// It may have one 802.1Q tag (a kernel may have taken it off) and one redundancy tag (the last
/// bridge may have done so).
#[inline]
pub fn unwrap(octets: &[u8]) -> Result<(Ethernet, &[u8]), WireError> {
    if octets.len() > MAX_FRAME {
        return Err(WireError::Size);
    }
    let (ethernet, mut rest) = Ethernet::parse(octets)?;
    let mut ethertype = ethernet.ethertype;
    if ethertype == ETHERTYPE_VLAN {
        let (tag, behind) = Tag::parse(rest)?;
        (ethertype, rest) = (tag.ethertype, behind);
    }
    if ethertype == ETHERTYPE_R_TAG {
        let (tag, behind) = RTag::parse(rest)?;
        (ethertype, rest) = (tag.ethertype, behind);
    }
    if ethertype == ETHERTYPE_AVTP { Ok((ethernet, rest)) } else { Err(WireError::EtherType) }
}

impl<'a> Frame<'a> {
    /// Reads a tagged frame without its FCS. Padding after the payload is allowed.
    pub fn parse(octets: &'a [u8]) -> Result<Self, WireError> {
        if octets.len() < HEADERS || octets.len() > MAX_FRAME {
            return Err(WireError::Size);
        }
        let (ethernet, rest) = Ethernet::parse(octets)?;
        let (tag, mut rest) = Tag::parse(rest)?;
        let (mut ethertype, mut r_tag) = (tag.ethertype, None);
        if ethertype == ETHERTYPE_R_TAG {
            let (redundancy, behind) = RTag::parse(rest)?;
            (ethertype, rest, r_tag) = (redundancy.ethertype, behind, Some(redundancy.sequence));
        }
        if ethernet.ethertype != ETHERTYPE_VLAN || ethertype != ETHERTYPE_AVTP {
            return Err(WireError::EtherType);
        }
        let pdu = Pdu::parse(rest)?;
        let header = Header {
            destination: ethernet.destination,
            source: ethernet.source,
            vlan: tag.vlan,
            pcp: tag.pcp,
            r_tag,
            number: pdu.number,
            instance: pdu.instance,
            uncertain: pdu.uncertain,
            stream_id: pdu.stream_id,
            timestamp: pdu.timestamp,
            meeting: pdu.meeting,
        };
        Ok(Self { header, payload: pdu.payload })
    }

    fn layers(&self) -> (Ethernet, Tag, Option<RTag>, Pdu<'a>) {
        let Header { destination, source, vlan, pcp, r_tag, .. } = self.header;
        let Header { number, instance, uncertain, stream_id, timestamp, meeting, .. } = self.header;
        let payload = self.payload;
        (
            Ethernet { destination, source, ethertype: ETHERTYPE_VLAN },
            Tag {
                vlan,
                pcp,
                ethertype: if r_tag.is_some() { ETHERTYPE_R_TAG } else { ETHERTYPE_AVTP },
            },
            r_tag.map(|sequence| RTag { sequence, ethertype: ETHERTYPE_AVTP }),
            Pdu { number, instance, uncertain, stream_id, timestamp, meeting, payload },
        )
    }
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ethernet, tag, r_tag, pdu) = self.layers();
        write!(f, "{ethernet} | {tag} | ")?;
        r_tag.map_or(Ok(()), |r_tag| write!(f, "{r_tag} | "))?;
        write!(f, "{pdu}")
    }
}

/// Writes a frame into `into`, padded to the shortest length, and returns how long it is.
///
/// # Panics
/// When the payload is longer than a frame can carry, or `into` shorter than the frame.
#[inline]
pub fn emit(header: &Header, payload: &[u8], into: &mut [u8]) -> usize {
    emit_with(header, payload, &[], into)
}

/// The same with a `trailer` behind the payload, as a part of the stream data.
///
/// # Panics
/// When both are longer than a frame can carry, or `into` shorter than the frame.
pub fn emit_with(header: &Header, payload: &[u8], trailer: &[u8], into: &mut [u8]) -> usize {
    let data = payload.len() + trailer.len();
    let length = (header.unit_at() + STREAM_HEADER + data).max(MIN_FRAME);
    assert!(length <= MAX_FRAME, "stream data of {data} octets fits no frame");
    let (ethernet, tag, r_tag, pdu) = Frame { header: *header, payload }.layers();
    let mut rest = tag.emit(ethernet.emit(&mut into[..length]));
    if let Some(r_tag) = r_tag {
        rest = r_tag.emit(rest);
    }
    pdu.emit_with(trailer, rest).fill(0);
    length
}

/// Writes the next message into a frame that [`emit`] has made, with what differs from one message
/// of a channel to the next: its number, uncertainty, timestamp and meeting. All else of `header`,
/// and the payload's length, must be as they were then.
///
/// # Panics
/// When `frame` is shorter than header and payload.
#[inline]
pub fn renew(header: &Header, payload: &[u8], frame: &mut [u8]) {
    let (before, unit) = frame.split_at_mut(header.unit_at());
    if let Some(sequence) = header.r_tag {
        RTag { sequence, ethertype: ETHERTYPE_AVTP }.emit(&mut before[TAGGED..]);
    }
    let Header { number, instance, uncertain, stream_id, timestamp, meeting, .. } = *header;
    Pdu { number, instance, uncertain, stream_id, timestamp, meeting, payload }.renew(unit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            destination: MacAddress([0x01, 0, 0x5e, 1, 0x11, 0x42]),
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            vlan: 2,
            pcp: 3,
            r_tag: None,
            number: 0x0507,
            instance: 9,
            uncertain: true,
            stream_id: StreamId(42),
            timestamp: 0x0102_0304,
            meeting: 0x8304_0506,
        }
    }

    #[test]
    fn the_frame_of_the_papers_channel_has_these_octets() {
        let mut octets = [0xff; 128];
        let length = emit(&header(), &[1, 2, 3, 4, 5, 6, 7, 8], &mut octets);
        let expected: Vec<u8> = [
            &[0x01, 0x00, 0x5e, 0x01, 0x11, 0x42][..], // destination
            &[0x02, 0x00, 0x00, 0x00, 0x00, 0x01],     // source
            &[0x81, 0x00, 0x60, 0x02, 0x22, 0xf0],     // PCP 3, VID 2, IEEE 1722
            &[0x7f, 0x81, 0x07, 0x01],                 // EF_STREAM, sv tv, sequence, tu
            &[0, 0, 0, 0, 0, 0, 0, 42],                // stream id
            &[1, 2, 3, 4, 0x83, 4, 5, 6, 0, 8, 9, 5],  // timestamp, meeting, length 8, instance
            &[1, 2, 3, 4, 5, 6, 7, 8],
            &[0; 14], // padding to 64 octets
        ]
        .concat();
        assert_eq!(&octets[..length], &expected);
    }

    #[test]
    fn a_replicated_frame_has_its_number_behind_the_vlan() {
        let mut octets = [0xff; 128];
        let replicated = Header { r_tag: Some(0x0304), ..header() };
        let length = emit(&replicated, &[1; 8], &mut octets);
        let tags = [0x81, 0x00, 0x60, 0x02, 0xf1, 0xc1, 0, 0, 3, 4, 0x22, 0xf0, 0x7f];
        assert_eq!(octets[12..25], tags);
        assert_eq!(length, MIN_FRAME);
        let frame = Frame::parse(&octets[..length]).expect("a frame");
        assert_eq!(frame.header, replicated);
        assert!(frame.to_string().contains("EtherType 0xf1c1 | R-TAG 772, EtherType 0x22f0 | "));
        // What the reserved field says does not matter.
        octets[18] = 9;
        assert_eq!(Frame::parse(&octets[..length]).map(|f| f.header), Ok(replicated));
        octets[22] = 0x08;
        assert_eq!(Frame::parse(&octets[..length]), Err(WireError::EtherType));
        assert_eq!(unwrap(&octets[..length]).map(drop), Err(WireError::EtherType));
    }

    #[test]
    fn a_frame_is_printed_layer_by_layer() {
        let frame = Frame { header: header(), payload: &[0; 8] };
        assert_eq!(
            frame.to_string(),
            "02:00:00:00:00:01 > 01:00:5e:01:11:42, EtherType 0x8100 | VLAN 2, PCP 3, EtherType \
             0x22f0 | stream 42, talker 9, message 1287, captured 16909060 ns (its clock is not \
             synchronised), 8 octets"
        );
    }

    #[test]
    fn a_talker_that_does_not_say_which_it_is_has_a_number_of_eight_bits() {
        let older = Header { instance: 0, meeting: 0, ..header() };
        let mut octets = [0; 128];
        let length = emit(&older, &[9; 8], &mut octets);
        assert_eq!(&octets[34..38], &[0; 4], "as it always was");
        assert_eq!(&octets[40..42], &[0; 2], "as it always was");
        octets[41] = 5;
        let read = Frame::parse(&octets[..length]).expect("a frame");
        assert_eq!((read.header.number, read.header.instance), (7, 0));
    }

    #[test]
    fn frames_of_the_wrong_shape_are_refused_each_for_its_reason() {
        let mut octets = [0; 128];
        let length = emit(&header(), &[9; 8], &mut octets);
        let good = octets[..length].to_vec();
        let broken = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            bad
        };
        for (bad, reason) in [
            (good[..41].to_vec(), WireError::Size),
            (vec![0; MAX_FRAME + 1], WireError::Size),
            (broken(12, 0x08), WireError::EtherType),
            (broken(17, 0xf1), WireError::EtherType),
            (broken(18, 0x02), WireError::Header),
            (broken(19, 0x91), WireError::Header), // version 1
            (broken(19, 0x01), WireError::Header), // no stream id
            (broken(19, 0x80), WireError::Header), // no timestamp
            (broken(39, 200), WireError::Length),
        ] {
            assert_eq!(Frame::parse(&bad), Err(reason));
        }
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_parsed_back(
            payload in proptest::collection::vec(any::<u8>(), 0..1470), r_tag: Option<u16>,
            number: u16, instance in 1u8.., uncertain: bool, stream_id: u64, timestamp: u32,
            meeting: u32, vlan in 0u16..4096, pcp in 0u8..8,
        ) {
            let header = Header {
                r_tag,
                number,
                instance,
                uncertain,
                stream_id: StreamId(stream_id),
                timestamp,
                meeting,
                vlan,
                pcp,
                ..header()
            };
            let mut octets = [0; MAX_FRAME];
            let length = emit(&header, &payload, &mut octets);
            let expected = Frame { header, payload: &payload };
            prop_assert_eq!(Frame::parse(&octets[..length]), Ok(expected));
            let (ethernet, pdu) = unwrap(&octets[..length]).expect("a tagged frame");
            prop_assert_eq!(ethernet.destination, header.destination);
            prop_assert_eq!(ethernet.source, header.source);
            let pdu = Pdu::parse(pdu).expect("a data unit");
            prop_assert_eq!((pdu.stream_id, pdu.payload), (header.stream_id, &payload[..]));
            // As a kernel that takes the tag off hands it over.
            let untagged = [&octets[..12], &octets[16..length]].concat();
            let (ethernet, again) = unwrap(&untagged).expect("an untagged frame");
            prop_assert_eq!(ethernet.destination, header.destination);
            prop_assert_eq!(Pdu::parse(again), Ok(pdu));
        }

        #[test]
        fn a_renewed_frame_is_what_would_be_emitted(
            payloads in proptest::collection::vec(any::<[u8; 19]>(), 2), longer: bool,
            r_tag: Option<[u16; 2]>, number: [u16; 2], instance: u8, uncertain: [bool; 2],
            timestamp: [u32; 2], meeting: [u32; 2],
        ) {
            let long = if longer { 60 } else { 1 };
            let of = |message: usize| {
                let header = Header {
                    r_tag: r_tag.map(|numbers| numbers[message]),
                    number: number[message],
                    instance,
                    uncertain: uncertain[message],
                    timestamp: timestamp[message],
                    meeting: meeting[message],
                    ..header()
                };
                (header, payloads[message].repeat(long))
            };
            let ((first, payload), (second, next)) = (of(0), of(1));
            let mut octets = [[0xff; MAX_FRAME]; 2];
            let length = emit(&first, &payload, &mut octets[0]);
            renew(&second, &next, &mut octets[0][..length]);
            prop_assert_eq!(emit(&second, &next, &mut octets[1]), length);
            prop_assert_eq!(&octets[0][..length], &octets[1][..length]);
        }

        #[test]
        fn no_octets_make_the_parser_panic(
            octets in proptest::collection::vec(any::<u8>(), 0..1600),
        ) {
            let _ = Frame::parse(&octets);
            let _ = Pdu::parse(&octets);
            let _ = unwrap(&octets).map(|(_, pdu)| Pdu::parse(pdu));
        }

        #[test]
        fn no_mutation_of_a_good_frame_makes_the_parser_panic(
            at in 0usize..64, value: u8, cut in 0usize..64,
        ) {
            let mut octets = [0; 128];
            let length = emit(&header(), &[1; 8], &mut octets);
            octets[at] = value;
            let _ = Frame::parse(&octets[..length - cut]);
            let _ = unwrap(&octets[..length - cut]).map(|(_, pdu)| Pdu::parse(pdu));
        }
    }
}
