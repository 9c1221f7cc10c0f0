//! What decides which frame an egress port sends next, and when: transmission selection, gates and
//! preemption. The engine carries it out, the analysis bounds it, a plan writes it.

use crate::time::{NetTime, Span};
use crate::units::{BitRate, Octets};

/// Queues of a port, and traffic classes of the network (802.1Q-2022 8.6.6): 7 is the highest.
pub const QUEUES: usize = 8;

/// How one port sends. The default is eight queues in strict priority, all gates open, no
/// preemption, members of every VLAN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// The transmission selection algorithm of each queue (802.1Q-2022 8.6.8), by traffic class.
    pub selection: [Selection; QUEUES],
    /// Gate control lists in the order of their base times; each is in force from its base time
    /// to that of the next one. Before the first base time, and when empty, all gates are open.
    pub gates: Vec<GateControl>,
    /// Bit q is set if frames of queue q may be interrupted by those of queues whose bit is not
    /// (802.1Qbu, 802.3br). 0: no preemption.
    pub preemptable: u8,
    /// The VLANs whose frames leave here; `None`: all.
    pub vlans: Option<Vec<u16>>,
}

/// A transmission selection algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Strict priority (802.1Q-2022 8.6.8.1): the queue may send whenever no higher one may.
    #[default]
    StrictPriority,
    /// The credit-based shaper (8.6.8.2).
    CreditBased {
        /// Of the wire: preamble, tag, FCS and gap are counted. Behind gates it is operIdleSlope,
        /// what the queue has in the long run: credit rises faster while the gate is open, by as
        /// much as it stands still while it is closed.
        idle_slope: BitRate,
    },
    /// Asynchronous traffic shaping (802.1Qcr, 8.6.8.5): frames leave in the order of the
    /// eligibility times that their stream's [`TokenBucket`] gave them on arrival. Streams
    /// without one are eligible at once.
    Asynchronous,
}

/// One gate control list (802.1Qbv, 802.1Q-2022 8.6.8.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateControl {
    /// When the first cycle starts, by the node's clock.
    pub base: NetTime,
    /// How long a cycle takes; positive. A list that is shorter keeps its last state, one that is
    /// longer is cut.
    pub cycle: Span,
    /// In order; never empty, spans are positive.
    pub entries: Vec<GateEntry>,
    /// Whether a frame starts only if it ends, with its gap, before its gate closes. Without it,
    /// what has started continues, and guard bands must be planned.
    pub length_aware: bool,
}

impl GateControl {
    /// When a cycle starts, no earlier than the clock's epoch: the base time, or as many whole
    /// cycles later as it takes.
    pub fn base_from_epoch(&self) -> Span {
        let base = self.base - NetTime::ZERO;
        match base < Span::ZERO {
            true => Span::from_ns(base.as_ns().rem_euclid(self.cycle.as_ns())),
            false => base,
        }
    }
}

/// One state of a port's gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateEntry {
    /// Bit q is set while queue q may start a frame.
    pub open: u8,
    /// For how long.
    pub span: Span,
}

/// The parameters of one stream's asynchronous shaper or flow meter: a bucket of `burst` that
/// fills at `rate`; what is counted is the frame on the wire, with preamble and gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Committed information rate.
    pub rate: BitRate,
    /// Committed burst size; at least the largest frame on the wire.
    pub burst: Octets,
}

/// Per-stream filtering and policing where a stream enters its first bridge (802.1Qci, 802.1Q-2022
/// 8.6.5.2). What does not conform is dropped there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policing {
    /// Frames beyond it are dropped.
    pub meter: Option<TokenBucket>,
    /// Longer frames (destination address to FCS) are dropped.
    pub max_frame: Option<Octets>,
    /// Once a frame was dropped, all later ones are ("StreamBlockedDueToOversizeFrame",
    /// "MarkAllRed").
    pub block: bool,
}
