//! Transmission selection algorithms (802.1Q-2018 8.6.8): when a queue of a port may send.
//!
//! One module per algorithm, all behind [`Shaper`]. Strict priority among the queues that may send
//! is the port's work.

mod credit;

pub(crate) use credit::CreditBased;
use onbeat_model::time::NetTime;

/// The algorithm of one queue.
#[derive(Debug)]
pub(crate) enum Shaper {
    /// Strict priority (8.6.8.1): it may always send.
    Priority,
    /// The credit-based shaper (8.6.8.2).
    CreditBased(CreditBased),
}

impl Shaper {
    /// A frame is about to be queued at `now`; `empty`: no other is waiting.
    pub(crate) fn queueing(&mut self, now: NetTime, empty: bool) {
        match self {
            Self::Priority => {}
            Self::CreditBased(credit) => credit.settle(now, empty),
        }
    }

    /// The earliest time from `now` on at which the head of the queue, which is not empty, may be
    /// sent, if nothing else happens.
    pub(crate) fn eligible_at(&mut self, now: NetTime) -> NetTime {
        match self {
            Self::Priority => now,
            Self::CreditBased(credit) => credit.eligible_at(now),
        }
    }

    /// The head's transmission starts at `now` and occupies the port with `wire_bits` until
    /// `until`.
    pub(crate) fn started(&mut self, now: NetTime, wire_bits: u64, until: NetTime) {
        match self {
            Self::Priority => {}
            Self::CreditBased(credit) => credit.started(now, wire_bits, until),
        }
    }
}
