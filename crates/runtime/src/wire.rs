//! The frame of a network channel: Ethernet II, one 802.1Q tag, and the IEEE 1722 common stream
//! header with the experimental subtype (Austad et al. 2023, section 4.5; IEEE 1722-2016 4.4.4).
//! The stream header and the message are a *data unit* ([`Pdu`]); UDP carries it without Ethernet.
//!
//! All parsing is total: any octets give a view or a [`WireError`], never a panic.

use onbeat_model::units::{MacAddress, StreamId};

/// EtherType of an 802.1Q customer tag.
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// EtherType of IEEE 1722.
pub const ETHERTYPE_AVTP: u16 = 0x22f0;
/// Subtype EF_STREAM, experimental streams.
pub const SUBTYPE_EF_STREAM: u8 = 0x7f;
/// Octets before the data unit in a tagged frame.
pub const TAGGED: usize = 18;
/// Octets of the two addresses, before the tag or the EtherType.
pub const ADDRESSES: usize = 12;
/// Octets of the stream header.
pub const STREAM_HEADER: usize = 24;
/// Octets before the payload.
pub const HEADERS: usize = TAGGED + STREAM_HEADER;
/// The longest frame without its FCS.
pub const MAX_FRAME: usize = 1518;
/// The shortest tagged frame without its FCS; shorter payloads are padded with zeros.
pub const MIN_FRAME: usize = 64;

/// Where each field of the Ethernet header is.
mod field {
    use std::ops::Range;

    pub(super) const DESTINATION: Range<usize> = 0..6;
    pub(super) const SOURCE: Range<usize> = 6..12;
    pub(super) const TAG_TYPE: Range<usize> = 12..14;
    pub(super) const TAG: Range<usize> = 14..16;
    pub(super) const ETHERTYPE: Range<usize> = 16..18;
}

/// Where each field of the data unit is.
mod unit {
    use std::ops::Range;

    pub(super) const SUBTYPE: usize = 0;
    pub(super) const SV_VERSION_TV: usize = 1;
    pub(super) const SEQUENCE: usize = 2;
    pub(super) const TU: usize = 3;
    pub(super) const STREAM_ID: Range<usize> = 4..12;
    pub(super) const TIMESTAMP: Range<usize> = 12..16;
    pub(super) const MEETING: Range<usize> = 16..20;
    pub(super) const LENGTH: Range<usize> = 20..22;
    pub(super) const INSTANCE: usize = 22;
    pub(super) const UPPER_NUMBER: usize = 23;
}

/// `sv` = 1, `tv` = 1: the stream id and the timestamp are valid.
const STREAM_VALID: u8 = 0x80;
const TIMESTAMP_VALID: u8 = 0x01;
const VERSION_MASK: u8 = 0x70;

/// Why octets are not a frame of a network channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Too short for the headers, or longer than a frame may be.
    #[error("the frame's length is not that of a channel's frame")]
    Size,
    /// Not IEEE 1722, or tagged where it may not be or not where it must be.
    #[error("the frame is not IEEE 1722")]
    EtherType,
    /// Another subtype, another version, or no valid stream id or timestamp.
    #[error("the stream header is not one of ours")]
    Header,
    /// `stream_data_length` is more than what follows it.
    #[error("the payload is shorter than its header says")]
    Length,
}

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

/// A parsed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header's fields.
    pub header: Header,
    /// The message.
    pub payload: &'a [u8],
}

/// A parsed data unit: what a frame or a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// See [`Header::number`].
    pub number: u16,
    /// See [`Header::instance`].
    pub instance: u8,
    /// The talker's clock is not synchronised.
    pub uncertain: bool,
    /// Which stream.
    pub stream_id: StreamId,
    /// Lower 32 bits of the capture time in nanoseconds.
    pub timestamp: u32,
    /// See [`Header::meeting`].
    pub meeting: u32,
    /// The message.
    pub payload: &'a [u8],
}

fn array<const N: usize>(octets: &[u8], at: std::ops::Range<usize>) -> Result<[u8; N], WireError> {
    octets.get(at).and_then(|part| part.try_into().ok()).ok_or(WireError::Size)
}

fn u16_at(octets: &[u8], at: std::ops::Range<usize>) -> Result<u16, WireError> {
    array(octets, at).map(u16::from_be_bytes)
}

impl<'a> Pdu<'a> {
    /// Reads a data unit. Padding after the payload is allowed.
    pub fn parse(octets: &'a [u8]) -> Result<Self, WireError> {
        if octets.len() < STREAM_HEADER || octets.len() > MAX_FRAME - TAGGED {
            return Err(WireError::Size);
        }
        let flags = octets[unit::SV_VERSION_TV];
        let valid = flags & STREAM_VALID != 0 && flags & TIMESTAMP_VALID != 0;
        if octets[unit::SUBTYPE] != SUBTYPE_EF_STREAM || flags & VERSION_MASK != 0 || !valid {
            return Err(WireError::Header);
        }
        let length = usize::from(u16_at(octets, unit::LENGTH)?);
        let instance = octets[unit::INSTANCE];
        // Who does not say which talker it is may have anything there.
        let upper = if instance == 0 { 0 } else { octets[unit::UPPER_NUMBER] };
        Ok(Self {
            number: u16::from_be_bytes([upper, octets[unit::SEQUENCE]]),
            instance,
            uncertain: octets[unit::TU] & 1 == 1,
            stream_id: StreamId(u64::from_be_bytes(array(octets, unit::STREAM_ID)?)),
            timestamp: u32::from_be_bytes(array(octets, unit::TIMESTAMP)?),
            meeting: u32::from_be_bytes(array(octets, unit::MEETING)?),
            payload: octets[STREAM_HEADER..].get(..length).ok_or(WireError::Length)?,
        })
    }
}

/// The sender's address of an Ethernet frame.
pub fn source(octets: &[u8]) -> Result<MacAddress, WireError> {
    array(octets, field::SOURCE).map(MacAddress)
}

/// Splits an Ethernet frame without its FCS, with one 802.1Q tag or none (a kernel may have taken
/// it off), into the destination and the octets of the data unit.
pub fn unwrap(octets: &[u8]) -> Result<(MacAddress, &[u8]), WireError> {
    if octets.len() > MAX_FRAME {
        return Err(WireError::Size);
    }
    let destination = MacAddress(array(octets, field::DESTINATION)?);
    let start = match u16_at(octets, field::TAG_TYPE)? {
        ETHERTYPE_AVTP => ADDRESSES + 2,
        ETHERTYPE_VLAN if u16_at(octets, field::ETHERTYPE)? == ETHERTYPE_AVTP => TAGGED,
        _ => return Err(WireError::EtherType),
    };
    Ok((destination, octets.get(start..).ok_or(WireError::Size)?))
}

impl<'a> Frame<'a> {
    /// Reads a tagged frame without its FCS. Padding after the payload is allowed.
    pub fn parse(octets: &'a [u8]) -> Result<Self, WireError> {
        if octets.len() < HEADERS || octets.len() > MAX_FRAME {
            return Err(WireError::Size);
        }
        if u16_at(octets, field::TAG_TYPE)? != ETHERTYPE_VLAN
            || u16_at(octets, field::ETHERTYPE)? != ETHERTYPE_AVTP
        {
            return Err(WireError::EtherType);
        }
        let pdu = Pdu::parse(&octets[TAGGED..])?;
        let tag = u16_at(octets, field::TAG)?;
        let header = Header {
            destination: MacAddress(array(octets, field::DESTINATION)?),
            source: MacAddress(array(octets, field::SOURCE)?),
            vlan: tag & 0x0fff,
            pcp: (tag >> 13) as u8,
            number: pdu.number,
            instance: pdu.instance,
            uncertain: pdu.uncertain,
            stream_id: pdu.stream_id,
            timestamp: pdu.timestamp,
            meeting: pdu.meeting,
        };
        Ok(Self { header, payload: pdu.payload })
    }
}

/// Writes a frame into `into`, padded to the shortest length, and returns how long it is.
///
/// # Panics
/// When the payload is longer than a frame can carry, or `into` shorter than the frame.
pub fn emit(header: &Header, payload: &[u8], into: &mut [u8]) -> usize {
    let length = (HEADERS + payload.len()).max(MIN_FRAME);
    assert!(length <= MAX_FRAME, "a payload of {} octets fits no frame", payload.len());
    let frame = &mut into[..length];
    frame.fill(0);
    frame[field::DESTINATION].copy_from_slice(&header.destination.0);
    frame[field::SOURCE].copy_from_slice(&header.source.0);
    frame[field::TAG_TYPE].copy_from_slice(&ETHERTYPE_VLAN.to_be_bytes());
    let tag = u16::from(header.pcp & 7) << 13 | header.vlan & 0x0fff;
    frame[field::TAG].copy_from_slice(&tag.to_be_bytes());
    frame[field::ETHERTYPE].copy_from_slice(&ETHERTYPE_AVTP.to_be_bytes());
    let pdu = &mut frame[TAGGED..];
    pdu[unit::SUBTYPE] = SUBTYPE_EF_STREAM;
    pdu[unit::SV_VERSION_TV] = STREAM_VALID | TIMESTAMP_VALID;
    let [upper, lower] = header.number.to_be_bytes();
    pdu[unit::SEQUENCE] = lower;
    pdu[unit::TU] = u8::from(header.uncertain);
    pdu[unit::STREAM_ID].copy_from_slice(&header.stream_id.0.to_be_bytes());
    pdu[unit::TIMESTAMP].copy_from_slice(&header.timestamp.to_be_bytes());
    pdu[unit::MEETING].copy_from_slice(&header.meeting.to_be_bytes());
    pdu[unit::LENGTH].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    pdu[unit::INSTANCE] = header.instance;
    pdu[unit::UPPER_NUMBER] = if header.instance == 0 { 0 } else { upper };
    pdu[STREAM_HEADER..STREAM_HEADER + payload.len()].copy_from_slice(payload);
    length
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
            payload in proptest::collection::vec(any::<u8>(), 0..1476),
            number: u16, instance in 1u8.., uncertain: bool, stream_id: u64, timestamp: u32,
            meeting: u32, vlan in 0u16..4096, pcp in 0u8..8,
        ) {
            let header = Header {
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
            let (destination, pdu) = unwrap(&octets[..length]).expect("a tagged frame");
            prop_assert_eq!(destination, header.destination);
            let pdu = Pdu::parse(pdu).expect("a data unit");
            prop_assert_eq!((pdu.stream_id, pdu.payload), (header.stream_id, &payload[..]));
            // As a kernel that takes the tag off hands it over.
            let untagged = [&octets[..12], &octets[16..length]].concat();
            let (destination, again) = unwrap(&untagged).expect("an untagged frame");
            prop_assert_eq!(destination, header.destination);
            prop_assert_eq!(Pdu::parse(again), Ok(pdu));
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
