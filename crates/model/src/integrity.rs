//! The integrity of a channel's messages: what a trailer behind them holds.

use crate::units::Octets;
use serde::{Deserialize, Serialize};

/// What a channel's frames carry behind the message so that its readers can check it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Integrity {
    /// Nothing: the frame's check sequence is all there is.
    #[default]
    None,
    /// A counter of 32 bits and a CRC of 32 bits over header and message, against damage inside
    /// of hosts and bridges (AUTOSAR E2E profile 4 has the same polynomial).
    Crc,
    /// A counter of 48 bits and a keyed tag of 128 bits over header, message and capture time:
    /// frames that somebody without the key made, changed or repeats are rejected.
    Authenticated,
}

impl Integrity {
    /// Octets behind the message: counter 4, CRC 4; or key number 1, zero 1, counter 6, epoch 8,
    /// tag 16.
    pub const fn trailer(self) -> Octets {
        match self {
            Self::None => Octets::new(0),
            Self::Crc => Octets::new(8),
            Self::Authenticated => Octets::new(32),
        }
    }

    /// The name that descriptions, tables and outputs have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Crc => "crc",
            Self::Authenticated => "authenticated",
        }
    }

    /// The integrity of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::None, Self::Crc, Self::Authenticated];
        all.into_iter().find(|integrity| integrity.as_str() == name)
    }
}
