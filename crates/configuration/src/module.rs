//! The YANG modules whose nodes and identities a configuration has.

/// A module. It has its own revision in each standard; only what all of them share is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    /// RFC 8343.
    Interfaces,
    /// IANA's registry of interface types.
    InterfaceTypes,
    /// 802.1Q-2022 48: bridge ports.
    Bridge,
    /// 802.1Q-2022 48: identities of selection algorithms.
    Types,
    /// 802.1Qcw-2023: identities of gate operations.
    Gates,
    /// 802.1Qcw-2023: gates of bridge ports.
    BridgeGates,
    /// 802.1Qdx-2024: credit-based shapers of bridge ports.
    BridgeShapers,
    /// 802.1Qcz-2023: stream filters and ATS schedulers of bridges.
    BridgeSchedulers,
    /// 802.1CBcv-2021: stream identification.
    StreamIdentification,
    /// 802.1CBcv-2021: frame replication and elimination.
    Replication,
    /// 802.1DC-2024: interfaces that are no bridge ports.
    Interface,
    /// 802.1DC-2024: gates of these.
    InterfaceGates,
    /// 802.1DC-2024: credit-based shapers of these.
    InterfaceShapers,
}

impl Module {
    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Interfaces => "ietf-interfaces",
            Self::InterfaceTypes => "iana-if-type",
            Self::Bridge => "ieee802-dot1q-bridge",
            Self::Types => "ieee802-dot1q-types",
            Self::Gates => "ieee802-dot1q-sched",
            Self::BridgeGates => "ieee802-dot1q-sched-bridge",
            Self::BridgeShapers => "ieee802-dot1q-cbsa-bridge",
            Self::BridgeSchedulers => "ieee802-dot1q-ats-bridge",
            Self::StreamIdentification => "ieee802-dot1cb-stream-identification",
            Self::Replication => "ieee802-dot1cb-frer",
            Self::Interface => "ieee802-dot1dc-gfqos",
            Self::InterfaceGates => "ieee802-dot1dc-sched-if",
            Self::InterfaceShapers => "ieee802-dot1dc-cbsa-if",
        }
    }

    /// The prefix that it gives itself, which identities in XML have.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Interfaces => "if",
            Self::InterfaceTypes => "ianaift",
            Self::Bridge => "dot1q",
            Self::Types => "dot1q-types",
            Self::Gates => "sched",
            Self::BridgeGates => "sched-bridge",
            Self::BridgeShapers => "cbsa-bridge",
            Self::BridgeSchedulers => "ats-bridge",
            Self::StreamIdentification => "dot1cb-sid",
            Self::Replication => "dot1cb-frer",
            Self::Interface => "dot1dc",
            Self::InterfaceGates => "sched-if",
            Self::InterfaceShapers => "cbsa-if",
        }
    }

    /// Its XML namespace.
    pub(crate) fn namespace(self) -> String {
        let authority = match self {
            Self::Interfaces | Self::InterfaceTypes => "urn:ietf:params:xml:ns:yang",
            _ => "urn:ieee:std:802.1Q:yang",
        };
        format!("{authority}:{}", self.name())
    }
}
