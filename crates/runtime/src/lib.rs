//! Network channels without I/O: the wire format, the two ends as state machines, and the blocking
//! operations composed from them over one seam.
//!
//! ```text
//! program → channel::{write, read, …} → talker / listener → wire
//!                     │
//!                     └→ port::Port: the only way to a clock or a network
//! ```
//!
//! *Real-time*: nothing here allocates, locks or blocks other than through [`port::Port`].

pub mod channel;
pub mod expect;
pub mod gptp;
pub mod listener;
pub mod meeting;
mod numbering;
pub mod port;
pub mod processor;
pub mod queue;
pub mod talker;
pub mod wire;
