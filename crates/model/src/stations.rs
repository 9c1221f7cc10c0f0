//! What the stations of Network Code did that carried the channels of a run.

use crate::system::NodeId;
use crate::time::Span;

/// All stations of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationsObserved {
    /// One per station, in the order of the plan.
    pub stations: Vec<StationCounts>,
    /// Frames that had to wait at a port for a frame of another station, or its gap. Slots exclude
    /// that. Unknown on networks of the kernel, whose ports are not seen.
    pub collisions: Option<u64>,
    /// Frames that something else than stations held up at a port, such as best effort; unknown on
    /// networks of the kernel.
    pub waits: Option<u64>,
}

/// What one station counted, from the beginning of the run to its end; over all its starts, if its
/// node has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationCounts {
    /// Its host.
    pub node: NodeId,
    /// Rounds that it has begun, or has seen begin.
    pub rounds: u64,
    /// Data frames sent, also those that carry a message again.
    pub sent: u64,
    /// Data frames received of messages that its program knows.
    pub received: u64,
    /// Messages that programs wrote and no frame carried: those that another one replaced before,
    /// and those of a time when the station was off.
    pub unsent: u64,
    /// On networks of the kernel, frames that were not sent because it was too late for them. This
    /// and the next two count from when the station began, before the run.
    pub missed: u64,
    /// There, frames that were sent later than that all the same, or taken later.
    pub late: u64,
    /// There, frames that the kernel did not take.
    pub refused: u64,
    /// How often it waited for a round in vain.
    pub timeouts: u64,
    /// How often a deadline of its program had passed.
    pub overruns: u64,
    /// Beginnings of rounds that came when it waited for none.
    pub discarded: u64,
    /// Whether it has stopped because of a trap.
    pub has_stopped: bool,
    /// How late its frames were, on networks of the kernel.
    pub slot_error: Option<SlotErrorFigures>,
}

/// From the instant at which the first octet of a frame should have left to that at which the
/// kernel had the frame, of all frames of a station that were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotErrorFigures {
    /// The median: the least that at least 50 % do not exceed.
    pub p50: Span,
    /// The least that at least 99 % do not exceed.
    pub p99: Span,
    /// The largest.
    pub max: Span,
}
