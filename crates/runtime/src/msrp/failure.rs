//! Why a bridge cannot reserve (802.1Q-2018 Table 46-15, formerly 35-6).

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

/// A failure code. Numbers without a meaning here are passed on as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureCode(pub u8);

impl FailureCode {
    /// Not enough bandwidth.
    pub const BANDWIDTH: Self = Self(1);
    /// Not enough resources of the bridge.
    pub const BRIDGE_RESOURCES: Self = Self(2);
    /// Not enough bandwidth for the traffic class.
    pub const CLASS_BANDWIDTH: Self = Self(3);
    /// The StreamID is another talker's.
    pub const STREAM_ID_IN_USE: Self = Self(4);
    /// The destination address is another stream's.
    pub const DESTINATION_IN_USE: Self = Self(5);
    /// A stream of a higher rank has the bandwidth.
    pub const PREEMPTED: Self = Self(6);
    /// The accumulated latency is larger than first reported.
    pub const LATENCY_CHANGED: Self = Self(7);
    /// The egress port is not one of the SRP domain.
    pub const EGRESS_NOT_CAPABLE: Self = Self(8);
    /// Not enough resources of MSRP.
    pub const MSRP_RESOURCES: Self = Self(10);
    /// The priority is not that of an SR class.
    pub const NOT_AN_SR_PRIORITY: Self = Self(13);
    /// MaxFrameSize is more than the medium carries.
    pub const MAX_FRAME_SIZE: Self = Self(14);
    /// More ports than msrpMaxFanInPorts would send to one.
    pub const FAN_IN: Self = Self(15);
    /// The FirstValue of a registered StreamID changed.
    pub const FIRST_VALUE_CHANGED: Self = Self(16);

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self.0 {
            1 => "insufficient bandwidth",
            2 => "insufficient bridge resources",
            3 => "insufficient bandwidth for the traffic class",
            4 => "StreamID in use by another talker",
            5 => "stream destination address in use",
            6 => "preempted by a stream of higher rank",
            7 => "reported latency has changed",
            8 => "egress port is not AVB capable",
            9 => "use another destination address",
            10 => "out of MSRP resources",
            11 => "out of MMRP resources",
            12 => "cannot store the destination address",
            13 => "priority is not that of an SR class",
            14 => "MaxFrameSize is too large for the medium",
            15 => "msrpMaxFanInPorts limit reached",
            16 => "FirstValue changed for a registered StreamID",
            17 => "VLAN is blocked on the egress port",
            18 => "VLAN tagging is disabled on the egress port",
            19 => "SR class priority mismatch",
            20 => "enhanced attribute cannot be passed on",
            21 => "MaxLatency exceeded",
            22 => "no network identification",
            23 => "stream transformation not supported",
            24 => "stream identification not supported for transformation",
            25 => "needs a central network controller",
            _ => "unknown failure",
        }
    }
}

impl fmt::Display for FailureCode {
    /// `1 (insufficient bandwidth)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.meaning())
    }
}
