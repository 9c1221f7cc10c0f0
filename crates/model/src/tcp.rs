//! Messages over TCP, as the federates of a Lingua Franca program send them, and what a run saw of
//! them.

use crate::diagnostic::Origin;
use crate::system::{Delay, NodeId};
use crate::time::{Span, SyncedTime};
use crate::units::Octets;

/// Periodic messages from a host to another over one TCP connection, as best effort. A message has
/// a tag, its instant of the period; its reader waits until the tag and `after`, as a federate does
/// for a connection `after` a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpFlow {
    /// Unique.
    pub name: String,
    /// The sending host.
    pub talker: NodeId,
    /// The receiving host.
    pub listener: NodeId,
    /// The octets of each write of a message, in order; at least one write of at least one octet.
    pub writes: Vec<Octets>,
    /// From a tag to the next one.
    pub interval: Span,
    /// The first tag, by the talker's clock.
    pub phase: Span,
    /// How much later than its tag a message is handled, or as soon as it is there after that.
    pub after: Span,
    /// From the tag to the capture and the writes of a message, on the talker's host.
    pub lag: Delay,
    /// Whether Nagle's algorithm is on (without TCP_NODELAY).
    pub nagle: bool,
    /// Whether acknowledgements are delayed.
    pub delayed_ack: bool,
    /// Where the description says so.
    pub origin: Origin,
}

/// Messages of a flow whose times are kept; more are counted.
pub const TCP_MESSAGES_MAX: usize = 1 << 20;

/// One message that was written. All times are readings: those of the tag and the capture of the
/// talker's clock, the others of the listener's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpMessage {
    /// Its tag.
    pub tag: SyncedTime,
    /// When its value was captured.
    pub capture: SyncedTime,
    /// When its last octet was there for the program to read.
    pub receive: Option<SyncedTime>,
    /// When the program handled it.
    pub handled: Option<SyncedTime>,
}

/// What a run saw of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpObserved {
    /// In the order of the tags, at most [`TCP_MESSAGES_MAX`].
    pub messages: Vec<TcpMessage>,
    /// Messages beyond them.
    pub unrecorded: u64,
    /// Segments with data that were sent, each time.
    pub segments: u64,
    /// Of these, those with octets that had been sent before.
    pub retransmitted: u64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Times that duplicate acknowledgements made the sender send again.
    pub fast_retransmits: u64,
    /// Segments without data that the listener's host sent.
    pub acknowledgements: u64,
    /// Whether the connection was given up: what was not there by then is lost.
    pub failed: bool,
}
