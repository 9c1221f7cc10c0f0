//! The multiple registration protocol (MRP, IEEE 802.1Q-2018 clause 10) without I/O: octets and
//! requests with the time go in, octets and indications come out. Its applications are
//! [`msrp`](crate::msrp), [`mvrp`](crate::mvrp) and [`mmrp`](crate::mmrp).
//!
//! ```text
//! requests of the application ──→ participant ──→ indications to it
//!          octets of a port   ──→  ├ pdu: octets ↔ events             (clause 10.8)
//!                  timeouts   ──→  ├ applicant: what is declared      (10.7.7)
//!                                  ├ registrar: what is registered    (10.7.8)
//!                                  └ leave_all: LeaveAll, periodic    (10.7.9, 10.7.10)
//! ```
//!
//! A participant is one application on one port. [`propagation`] joins the participants of a
//! bridge's ports (MAP, 10.3); MSRP has rules of its own for that.
//!
//! Nothing is trusted that comes from a link: the reader is total, tables have a limit, and what
//! did not fit is counted.

pub mod applicant;
pub mod leave_all;
pub mod participant;
pub mod pdu;
pub mod propagation;
pub mod registrar;

mod random;

#[cfg(test)]
mod tests;

pub use applicant::{ApplicantEvent, ApplicantState, Sending};
pub use leave_all::{LeaveAllMachine, LeaveAllState};
pub use participant::{
    ATTRIBUTES_MAX, Indication, Medium, MrpInput, MrpOutput, MrpParticipant, MrpSettings, MrpTimers,
};
pub use pdu::{AttributeEvent, AttributeType, MrpApplication, MrpItem, PduError, PduWriter};
pub use propagation::{Propagation, PropagationInput};
pub use registrar::{RegistrarEvent, RegistrarMode, RegistrarState};

use onbeat_model::units::MacAddress;

/// Octets of an untagged Ethernet header.
const ETHERNET: usize = 14;

/// The frame of a PDU: untagged, from the destination address to the end of the PDU, without
/// padding (10.5, 10.8).
pub fn frame<A: MrpApplication>(source: MacAddress, pdu: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(ETHERNET + pdu.len());
    octets.extend_from_slice(&A::DESTINATION.0);
    octets.extend_from_slice(&source.0);
    octets.extend_from_slice(&A::ETHERTYPE.to_be_bytes());
    octets.extend_from_slice(pdu);
    octets
}

/// The PDU in a frame, if the frame has the address and the EtherType of the application.
pub fn pdu_of<A: MrpApplication>(frame: &[u8]) -> Option<&[u8]> {
    let (header, pdu) = frame.split_at_checked(ETHERNET)?;
    let [high, low] = A::ETHERTYPE.to_be_bytes();
    (header.starts_with(&A::DESTINATION.0) && header.ends_with(&[high, low])).then_some(pdu)
}
