//! The redundancy tag and what follows it (IEEE 802.1CB-2017 7.8): the number by which bridges
//! recognise copies of a replicated frame.

use super::{WireError, u16_at};
use std::fmt;
use std::ops::Range;

/// EtherType of a redundancy tag.
pub const ETHERTYPE_R_TAG: u16 = 0xf1c1;
/// Octets of the reserved field, the number and the EtherType behind them. The tag's own EtherType
/// belongs to the layer before it, which says by it that there is a tag.
pub const R_TAG: usize = 6;

const RESERVED: Range<usize> = 0..2;
const SEQUENCE: Range<usize> = 2..4;
const ETHERTYPE: Range<usize> = 4..6;

/// The tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RTag {
    /// Counts the frames of a stream, wrapping after 65,535.
    pub sequence: u16,
    /// What follows.
    pub ethertype: u16,
}

impl RTag {
    /// Reads what is behind [`ETHERTYPE_R_TAG`], and gives what follows. The reserved field is
    /// ignored (7.8.2).
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let tag =
            Self { sequence: u16_at(octets, SEQUENCE)?, ethertype: u16_at(octets, ETHERTYPE)? };
        Ok((tag, octets.get(R_TAG..).ok_or(WireError::Size)?))
    }

    /// Writes it, and gives the room behind it.
    ///
    /// # Panics
    /// When `into` is shorter than [`R_TAG`].
    #[inline]
    pub fn emit(self, into: &mut [u8]) -> &mut [u8] {
        let (tag, rest) = into.split_at_mut(R_TAG);
        tag[RESERVED].fill(0);
        tag[SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        tag[ETHERTYPE].copy_from_slice(&self.ethertype.to_be_bytes());
        rest
    }
}

impl fmt::Display for RTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R-TAG {}, EtherType {:#06x}", self.sequence, self.ethertype)
    }
}
