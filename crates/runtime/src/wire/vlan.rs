//! The tag of a VLAN and what follows it (IEEE 802.1Q-2022 9.6): a customer tag, whose drop
//! eligible indicator is neither read nor set.

use super::{WireError, u16_at};
use std::fmt;
use std::ops::Range;

/// EtherType of an 802.1Q customer tag.
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// Octets of the control information and the EtherType behind it. The tag's own EtherType belongs
/// to the layer before it, which says by it that there is a tag.
pub const TAG: usize = 4;

const CONTROL: Range<usize> = 0..2;
const ETHERTYPE: Range<usize> = 2..4;

/// The tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// VLAN identifier, 12 bits.
    pub vlan: u16,
    /// Priority code point, 3 bits.
    pub pcp: u8,
    /// What follows.
    pub ethertype: u16,
}

impl Tag {
    /// Reads what is behind [`ETHERTYPE_VLAN`], and gives what follows.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let control = u16_at(octets, CONTROL)?;
        let tag = Self {
            vlan: control & 0x0fff,
            pcp: (control >> 13) as u8,
            ethertype: u16_at(octets, ETHERTYPE)?,
        };
        Ok((tag, octets.get(TAG..).ok_or(WireError::Size)?))
    }

    /// Writes it, and gives the room behind it.
    ///
    /// # Panics
    /// When `into` is shorter than [`TAG`].
    #[inline]
    pub fn emit(self, into: &mut [u8]) -> &mut [u8] {
        let (tag, rest) = into.split_at_mut(TAG);
        let control = u16::from(self.pcp & 7) << 13 | self.vlan & 0x0fff;
        tag[CONTROL].copy_from_slice(&control.to_be_bytes());
        tag[ETHERTYPE].copy_from_slice(&self.ethertype.to_be_bytes());
        rest
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VLAN {}, PCP {}, EtherType {:#06x}", self.vlan, self.pcp, self.ethertype)
    }
}
