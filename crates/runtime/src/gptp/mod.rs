//! gPTP (IEEE 802.1AS-2020) without I/O: events with the local clock's time go in, what is to be
//! sent comes out. [`PtpInstance`] is a PTP Instance: an end station if it has one port, a relay if
//! it has several. What is implemented of the standard, and what is not: `docs/gptp.md`.
//!
//! ```text
//! stamped octets ──→ instance ──→ octets to send (and whose time stamp is wanted)
//!   time stamps  ──→  ├ peer_delay: delay and rate of each neighbour      (clause 11.2.19, 20)
//!    timeouts    ──→  ├ best_master: the state of each port               (10.3)
//!                     ├ servo: the synchronised clock                     (10.2.13, B.4)
//!                     └ message: octets ↔ messages                        (10.6, 11.4)
//! ```
//!
//! All arithmetic is in integers: intervals in 2⁻¹⁶ ns, rates in 2⁻⁴¹, as in the messages.
//! A node keeps a bounded amount of memory per port: the windows of [`peer_delay`], and one
//! Announce message with its path trace.

pub mod best_master;
pub mod instance;
pub mod message;
pub mod peer_delay;
pub mod servo;
pub mod time;

mod announce;
mod sync;

#[cfg(test)]
mod tests;

pub use announce::UTC_OFFSET_S;
pub use best_master::{PortState, SystemIdentity};
pub use instance::{Action, Condition, Event, PtpInstance, Settings, TimestampId};
pub use message::{ClockIdentity, Message, MessageError, PortIdentity};
pub use servo::{LinearClock, ServoSettings};
pub use time::{LocalClockTime, PtpTime, RateOffset, ScaledNs};

/// The group address of all messages: the nearest bridge or station takes them, none forwards them
/// (10.5.3, 11.3.3).
pub const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];

/// The EtherType of the messages (11.3.4).
pub const ETHERTYPE: u16 = 0x88f7;
