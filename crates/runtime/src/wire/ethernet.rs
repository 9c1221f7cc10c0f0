//! The header of an Ethernet frame: two addresses and what follows (IEEE 802.3-2018 3.1.1).

use super::{WireError, array, u16_at};
use onbeat_model::units::MacAddress;
use std::fmt;
use std::ops::Range;

/// Octets of the two addresses, before the tag or the EtherType.
pub const ADDRESSES: usize = 12;
/// Octets of the whole header.
pub const ETHERNET: usize = ADDRESSES + 2;

const DESTINATION: Range<usize> = 0..6;
const SOURCE: Range<usize> = 6..12;
const ETHERTYPE: Range<usize> = 12..14;

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// The sending port's address.
    pub source: MacAddress,
    /// What follows: a protocol, or a tag ([`super::ETHERTYPE_VLAN`]).
    pub ethertype: u16,
}

impl Ethernet {
    /// Reads the header, and gives what is behind it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let header = Self {
            destination: MacAddress(array(octets, DESTINATION)?),
            source: MacAddress(array(octets, SOURCE)?),
            ethertype: u16_at(octets, ETHERTYPE)?,
        };
        Ok((header, octets.get(ETHERNET..).ok_or(WireError::Size)?))
    }

    /// Writes the header, and gives the room behind it.
    ///
    /// # Panics
    /// When `into` is shorter than [`ETHERNET`].
    #[inline]
    pub fn emit(self, into: &mut [u8]) -> &mut [u8] {
        let (header, rest) = into.split_at_mut(ETHERNET);
        header[DESTINATION].copy_from_slice(&self.destination.0);
        header[SOURCE].copy_from_slice(&self.source.0);
        header[ETHERTYPE].copy_from_slice(&self.ethertype.to_be_bytes());
        rest
    }
}

impl fmt::Display for Ethernet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}, EtherType {:#06x}", self.source, self.destination, self.ethertype)
    }
}
