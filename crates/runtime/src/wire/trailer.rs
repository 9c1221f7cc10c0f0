//! What stands behind a message that is checked, inside of the stream data: a counter beyond the
//! frame's own, and what shows that the message is unchanged.
//!
//! | `crc` | `authenticated` |
//! |--|--|
//! | counter, 4 octets | key number, 1 octet; zero, 1 octet |
//! | CRC, 4 octets | counter, 6 octets |
//! | | epoch, 8 octets |
//! | | tag, 16 octets |

use super::{WireError, array};
use onbeat_model::integrity::Integrity;

/// Octets of the trailer that ends with a CRC.
pub const CRC_TRAILER: usize = Integrity::Crc.trailer().get() as usize;
/// Octets of the CRC.
pub const CRC: usize = 4;
/// Octets of the trailer that ends with a tag.
pub const TAG_TRAILER: usize = Integrity::Authenticated.trailer().get() as usize;
/// Octets of the tag.
pub const AUTHENTICATION_TAG: usize = 16;
/// Counters of authenticated messages are below this.
pub const COUNTERS: u64 = 1 << 48;

/// The trailer of an authenticated message without its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which of the system's keys the tag is made with.
    pub key: u8,
    /// The message's number, below [`COUNTERS`].
    pub counter: u64,
    /// Drawn by each start of the talker; see [`crate::integrity::Epoch`].
    pub epoch: u64,
}

impl Mark {
    /// Reads it from the trailer, which may be followed by anything.
    ///
    /// # Errors
    /// It is too short, or its second octet is not zero: a layout that is not known.
    pub fn parse(trailer: &[u8]) -> Result<Self, WireError> {
        let word = u64::from_be_bytes(array(trailer, 0..8)?);
        if word >> 48 & 0xff != 0 {
            return Err(WireError::Header);
        }
        let epoch = u64::from_be_bytes(array(trailer, 8..16)?);
        Ok(Self { key: (word >> 56) as u8, counter: word % COUNTERS, epoch })
    }

    /// As 16 octets.
    #[inline]
    pub fn to_octets(self) -> [u8; TAG_TRAILER - AUTHENTICATION_TAG] {
        let word = (u64::from(self.key) << 56) | (self.counter % COUNTERS);
        let mut octets = [0; TAG_TRAILER - AUTHENTICATION_TAG];
        octets[..8].copy_from_slice(&word.to_be_bytes());
        octets[8..].copy_from_slice(&self.epoch.to_be_bytes());
        octets
    }
}
