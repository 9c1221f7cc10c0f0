//! Transmission selection algorithms (802.1Q-2022 8.6.8): when a queue of a port may send.
//!
//! One module per algorithm, all behind [`Shaper`]. Strict priority among the queues that may send,
//! gates and preemption are the port's work.

mod asynchronous;
mod credit;

use crate::gate::Gate;
use asynchronous::Asynchronous;
pub(crate) use asynchronous::Buckets;
use credit::CreditBased;
use onbeat_model::port::Selection;
use onbeat_model::time::NetTime;

/// The algorithm of one queue.
#[derive(Debug)]
pub(crate) enum Shaper {
    /// Strict priority (8.6.8.1): it may always send.
    Priority,
    /// The credit-based shaper (8.6.8.2).
    CreditBased(CreditBased),
    /// Asynchronous traffic shaping (8.6.8.5).
    Asynchronous(Asynchronous),
}

/// The queue that a frame is about to join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    /// How many frames wait there.
    pub(crate) waiting: usize,
    /// The frame's bits on the wire.
    pub(crate) wire_bits: u64,
    /// The frame's bucket, or `u32::MAX`.
    pub(crate) bucket: u32,
}

impl Shaper {
    pub(crate) fn new(selection: Selection) -> Self {
        match selection {
            Selection::StrictPriority => Self::Priority,
            Selection::CreditBased { idle_slope } => {
                Self::CreditBased(CreditBased::new(idle_slope))
            }
            Selection::Asynchronous => Self::Asynchronous(Asynchronous::default()),
        }
    }

    /// A frame is about to be queued at `now`. Returns its place in the queue.
    pub(crate) fn queueing(
        &mut self,
        now: NetTime,
        joining: &Joining,
        gate: &mut Gate,
        buckets: &mut Buckets,
    ) -> usize {
        match self {
            Self::Priority => joining.waiting,
            Self::CreditBased(credit) => {
                credit.settle(now, joining.waiting == 0, gate);
                joining.waiting
            }
            Self::Asynchronous(queue) => {
                queue.insert(buckets.eligible_at(now, joining.bucket, joining.wire_bits))
            }
        }
    }

    /// The earliest time from `now` on at which the head of the queue, which is not empty, may be
    /// sent, if nothing else happens; its gate is yet to be asked.
    pub(crate) fn eligible_at(&mut self, now: NetTime, gate: &mut Gate) -> NetTime {
        match self {
            Self::Priority => now,
            Self::CreditBased(credit) => credit.eligible_at(now, gate),
            Self::Asynchronous(queue) => queue.eligible_at().max(now),
        }
    }

    /// The head's transmission starts at `now` and occupies the port with `wire_bits` until
    /// `until`.
    pub(crate) fn started(&mut self, now: NetTime, wire_bits: u64, until: NetTime) {
        match self {
            Self::Priority => {}
            Self::CreditBased(credit) => credit.started(now, wire_bits, until),
            Self::Asynchronous(queue) => queue.started(),
        }
    }

    /// What waited was thrown away.
    pub(crate) fn flushed(&mut self) {
        if let Self::Asynchronous(queue) = self {
            *queue = Asynchronous::default();
        }
    }

    /// What it sends is cut, at the cost of so many bits.
    pub(crate) fn interrupted(&mut self, overhead_bits: u64) {
        if let Self::CreditBased(credit) = self {
            credit.interrupted(overhead_bits);
        }
    }

    /// The rest of what was cut continues, until `until` if nothing interrupts it again.
    pub(crate) fn resumed(&mut self, until: NetTime) {
        if let Self::CreditBased(credit) = self {
            credit.resumed(until);
        }
    }
}
