//! The multiple stream registration protocol (MSRP, IEEE 802.1Q-2018 clause 35) without I/O: an end
//! station's part ([`MsrpStation`]) and a bridge's ([`MsrpBridge`]).
//!
//! A talker advertises a stream; each bridge passes it on, or says why it cannot be reserved. A
//! listener that sees it declares to be ready; each bridge on the path back reserves bandwidth.
//! What is implemented, and the choices where the standard leaves freedom: `docs/reservation.md`.

pub mod admission;
pub mod attribute;
pub mod bridge;
pub mod failure;
pub mod station;

#[cfg(test)]
mod tests;

pub use attribute::{
    DomainDeclaration, ListenerDeclaration, Msrp, MsrpAttribute, MsrpKey, Rank, TSpec,
    TalkerDeclaration,
};
pub use bridge::{BridgeAction, BridgeInput, MsrpBridge, MsrpBridgeSettings, MsrpPort};
pub use failure::{BridgeId, FailureCode, FailureInformation};
pub use station::{
    DomainStatus, ListenerStatus, MsrpStation, StationAction, StationInput, StationSettings,
    StreamRequest, TalkerStatus,
};

pub(crate) use attribute::plus_address;

use onbeat_model::reservation::{MSRP_MARGIN, tagged_frame, tspec_rate};
use onbeat_model::system::Class;
use onbeat_model::units::BitRate;

/// The VLAN of streams unless management sets another (SR_PVID, Table 9-2).
pub const DEFAULT_VID: u16 = 2;

/// An SR class, as a station or a bridge is configured for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrClass {
    /// Which: A or B.
    pub class: Class,
    /// The priority of its frames.
    pub priority: u8,
    /// The VLAN of its streams.
    pub vid: u16,
}

impl SrClass {
    /// Classes A and B with the default priorities and VLAN (Tables 6-5, 35-7).
    pub const DEFAULT: [Self; 2] = [
        Self { class: Class::A, priority: Class::A.default_pcp(), vid: DEFAULT_VID },
        Self { class: Class::B, priority: Class::B.default_pcp(), vid: DEFAULT_VID },
    ];

    /// What a port declares of it.
    pub const fn domain(self) -> DomainDeclaration {
        let Self { class, priority, vid } = self;
        DomainDeclaration { class: class_id(class), priority, vid }
    }
}

/// SRclassID (Table 35-7). The protocol has no others: plans refuse them.
pub const fn class_id(class: Class) -> u8 {
    match class {
        Class::A => 6,
        Class::B | Class::Scheduled | Class::Asynchronous => 5,
    }
}

/// What a stream of a class takes of a port (34.3, 35.2.2.8.4).
pub fn stream_rate(class: Class, tspec: TSpec) -> BitRate {
    let interval = class.measurement_interval().unwrap_or(onbeat_model::time::Span::from_us(250));
    let frame = tagged_frame(tspec.max_frame_size);
    tspec_rate(frame, tspec.max_interval_frames.into(), interval, MSRP_MARGIN)
}
