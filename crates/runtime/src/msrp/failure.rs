//! Why a bridge cannot reserve (802.1Q-2018 Table 46-15, formerly 35-6).

pub use onbeat_model::reservation::FailureCode;
use std::fmt;

/// The FailureInformation of a Talker Failed (35.2.2.8.7): the code, and the bridge that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureInformation {
    /// The bridge.
    pub bridge: BridgeId,
    /// Why.
    pub code: FailureCode,
}

/// A bridge identifier (13.26.2): priority and address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgeId(pub [u8; 8]);

impl fmt::Display for BridgeId {
    /// `8000.02:00:00:cc:00:01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p, q, a, b, c, d, e, g] = self.0;
        write!(f, "{p:02x}{q:02x}.{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
