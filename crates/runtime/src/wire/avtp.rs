//! The data unit of a channel: IEEE 1722's common stream header, its subtype experimental, and
//! the message (Austad et al. 2023, section 4.5; IEEE 1722-2016 4.4.4). UDP carries it without
//! Ethernet.

use super::{MAX_FRAME, TAGGED, WireError, array, u16_at};
use onbeat_model::units::StreamId;
use std::fmt;
use std::ops::Range;

/// EtherType of IEEE 1722.
pub const ETHERTYPE_AVTP: u16 = 0x22f0;
/// Subtype EF_STREAM, experimental streams.
pub const SUBTYPE_EF_STREAM: u8 = 0x7f;
/// Octets of the stream header.
pub const STREAM_HEADER: usize = 24;

const SUBTYPE: usize = 0;
const SV_VERSION_TV: usize = 1;
const SEQUENCE: usize = 2;
const TU: usize = 3;
const STREAM_ID: Range<usize> = 4..12;
const TIMESTAMP: Range<usize> = 12..16;
const MEETING: Range<usize> = 16..20;
const LENGTH: Range<usize> = 20..22;
const INSTANCE: usize = 22;
const UPPER_NUMBER: usize = 23;

/// `sv` = 1, `tv` = 1: the stream id and the timestamp are valid.
const STREAM_VALID: u8 = 0x80;
const TIMESTAMP_VALID: u8 = 0x01;
const VERSION_MASK: u8 = 0x70;

/// A data unit: what a frame or a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// See [`super::Header::number`].
    pub number: u16,
    /// See [`super::Header::instance`].
    pub instance: u8,
    /// The talker's clock is not synchronised.
    pub uncertain: bool,
    /// Which stream.
    pub stream_id: StreamId,
    /// Lower 32 bits of the capture time in nanoseconds.
    pub timestamp: u32,
    /// See [`super::Header::meeting`].
    pub meeting: u32,
    /// The stream data: the message, and its trailer if the channel has one.
    pub payload: &'a [u8],
}

impl<'a> Pdu<'a> {
    /// Reads a data unit. Padding after the payload is allowed.
    pub fn parse(octets: &'a [u8]) -> Result<Self, WireError> {
        if octets.len() < STREAM_HEADER || octets.len() > MAX_FRAME - TAGGED {
            return Err(WireError::Size);
        }
        let flags = octets[SV_VERSION_TV];
        let valid = flags & STREAM_VALID != 0 && flags & TIMESTAMP_VALID != 0;
        if octets[SUBTYPE] != SUBTYPE_EF_STREAM || flags & VERSION_MASK != 0 || !valid {
            return Err(WireError::Header);
        }
        let length = usize::from(u16_at(octets, LENGTH)?);
        let instance = octets[INSTANCE];
        // Who does not say which talker it is may have anything there.
        let upper = if instance == 0 { 0 } else { octets[UPPER_NUMBER] };
        Ok(Self {
            number: u16::from_be_bytes([upper, octets[SEQUENCE]]),
            instance,
            uncertain: octets[TU] & 1 == 1,
            stream_id: StreamId(u64::from_be_bytes(array(octets, STREAM_ID)?)),
            timestamp: u32::from_be_bytes(array(octets, TIMESTAMP)?),
            meeting: u32::from_be_bytes(array(octets, MEETING)?),
            payload: octets[STREAM_HEADER..].get(..length).ok_or(WireError::Length)?,
        })
    }

    /// Writes the data unit, and gives the room behind it.
    ///
    /// # Panics
    /// When `into` is shorter than header and payload, or the payload longer than 65,535 octets.
    #[inline]
    pub fn emit(self, into: &mut [u8]) -> &mut [u8] {
        self.emit_with(&[], into)
    }

    /// The same with `trailer` behind the payload, as a part of the stream data.
    ///
    /// # Panics
    /// When `into` is shorter than all of that, or the stream data longer than 65,535 octets.
    #[inline]
    pub fn emit_with<'b>(self, trailer: &[u8], into: &'b mut [u8]) -> &'b mut [u8] {
        let data = self.payload.len() + trailer.len();
        let (pdu, rest) = into.split_at_mut(STREAM_HEADER + data);
        let length = u16::try_from(data).expect("a payload that fits a frame");
        pdu[SUBTYPE] = SUBTYPE_EF_STREAM;
        pdu[SV_VERSION_TV] = STREAM_VALID | TIMESTAMP_VALID;
        pdu[STREAM_ID].copy_from_slice(&self.stream_id.0.to_be_bytes());
        pdu[LENGTH].copy_from_slice(&length.to_be_bytes());
        pdu[INSTANCE] = self.instance;
        let behind = self.renew(pdu);
        behind.copy_from_slice(trailer);
        rest
    }

    /// Writes what differs from one data unit of a talker to the next, its payload too, and gives
    /// the room behind that.
    #[inline]
    pub(super) fn renew(self, pdu: &mut [u8]) -> &mut [u8] {
        let (header, rest) = pdu.split_at_mut(STREAM_HEADER);
        let [upper, lower] = self.number.to_be_bytes();
        header[SEQUENCE] = lower;
        header[TU] = u8::from(self.uncertain);
        header[TIMESTAMP].copy_from_slice(&self.timestamp.to_be_bytes());
        header[MEETING].copy_from_slice(&self.meeting.to_be_bytes());
        header[UPPER_NUMBER] = if self.instance == 0 { 0 } else { upper };
        let (payload, behind) = rest.split_at_mut(self.payload.len());
        payload.copy_from_slice(self.payload);
        behind
    }
}

impl fmt::Display for Pdu<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, instance, timestamp, payload, .. } = self;
        let stream = self.stream_id.0;
        write!(f, "stream {stream}, talker {instance}, message {number}, captured {timestamp} ns")?;
        if self.uncertain {
            f.write_str(" (its clock is not synchronised)")?;
        }
        write!(f, ", {} octets", payload.len())
    }
}
