//! Network channels without I/O: the wire format, the two ends as state machines, and the blocking
//! operations composed from them over one seam.
//!
//! ```text
//! program → channel::{write, read, …} → talker / listener → wire
//!                     │
//!                     └→ channel_io::ChannelIo: the only way to a clock or a network
//! ```
//!
//! *Real-time*: nothing here allocates, locks or blocks other than through
//! [`channel_io::ChannelIo`].

pub mod batch;
pub mod channel;
pub mod channel_io;
pub mod expect;
pub mod federate;
pub mod fragment;
pub mod gptp;
pub mod integrity;
pub mod launch;
pub mod listener;
pub mod liveness;
pub mod meeting;
pub mod mmrp;
pub mod mrp;
pub mod msrp;
pub mod mvrp;
pub mod network_code;
mod numbering;
pub mod processor;
pub mod queue;
pub mod talker;
pub mod tcp;
pub mod wire;
