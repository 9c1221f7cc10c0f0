//! When a port has served so much of a queue: what each shaper leaves, and their combinations.

use super::curve::Curve;
use super::gates::Accrual;
use super::{BILLION, div_ceil};
use onbeat_model::units::{BitRate, frame};

/// What a queue is served at least. From an instant s at which its backlog begins, for any time
/// x it gets
///
/// - what `capacity` leaves when `blocking` and `ahead` are taken off, as far as nothing but other
///   frames keeps it from the wire;
/// - no more than `shaped` allows, where its own credit does (both in a row: 'docs/bounds.md').
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// Bit/s of the wire and the nanoseconds without it, gates considered.
    pub(crate) capacity: (i128, i128),
    /// What may be in the way once, in nanobits.
    pub(crate) blocking: i128,
    /// What other queues send first.
    pub(crate) ahead: Curve,
    /// The queue's own rate of credit and the nanoseconds without it.
    pub(crate) shaped: Option<(i128, i128)>,
    /// Whether a frame may have to wait though all before it is sent: its gate is closed.
    pub(crate) gated: bool,
    /// Whether its transmissions may be interrupted.
    pub(crate) interrupted: bool,
    /// Bit/s of the wire.
    pub(crate) wire: i128,
}

impl Service {
    /// The nanoseconds after which `amount` of the queue is sent, so that what is next may start.
    /// None: perhaps never.
    pub(crate) fn time_for(&self, amount: i128) -> Option<i128> {
        // Behind gates what is next has started only when a part of it is sent.
        let amount = amount.max(0) + i128::from(self.gated);
        let unshaped = self.unshaped(amount)?;
        let Some((slope, latency)) = self.shaped else { return Some(unshaped) };
        let mut longest = unshaped.max(self.unshaped(0)? + div_ceil(amount, slope));
        for x in self.ahead.corners() {
            let sent = self.sent_unshaped(x);
            if (0..=amount).contains(&sent) {
                longest = longest.max(x + div_ceil(amount - sent, slope));
            }
        }
        Some(latency + longest)
    }

    fn unshaped(&self, amount: i128) -> Option<i128> {
        let (rate, latency) = self.capacity;
        self.ahead.overtaken(rate, latency, amount + self.blocking)
    }

    fn sent_unshaped(&self, x: i128) -> i128 {
        let (rate, latency) = self.capacity;
        rate * (x - latency) - self.blocking - self.ahead.at(x)
    }

    /// What is left in the long run, in bit/s.
    pub(crate) fn rate(&self) -> i128 {
        let unshaped = self.capacity.0 - self.ahead.rate();
        self.shaped.map_or(unshaped, |(slope, _)| slope.min(unshaped))
    }

    /// Whether the whole wire is always there for the queue.
    pub(crate) fn is_idle(&self) -> bool {
        let nothing = self.ahead.bucket() == (0, 0) && self.blocking == 0 && !self.gated;
        nothing && self.capacity.1 == 0 && self.shaped.is_none() && !self.interrupted
    }

    /// A rate and a latency that are never above it.
    pub(crate) fn rate_latency(&self) -> Option<(i128, i128)> {
        let (rate, latency) = self.capacity;
        let (burst, ahead) = self.ahead.bucket();
        let left = Some(rate - ahead).filter(|left| *left > 0)?;
        // Behind gates what is next has started only when a part of it is sent.
        let closed = i128::from(self.gated);
        let without = div_ceil(rate * latency + self.blocking + burst, left) + closed;
        Some(match self.shaped {
            Some((slope, later)) => (slope.min(left), without + later),
            None => (left, without),
        })
    }

    /// The most credit that the queue gathers, in nanobits. None: no limit is known, as the port
    /// may serve the queue more slowly than its credit rises.
    pub(crate) fn credit(&self, accrual: &Accrual) -> Option<i128> {
        let (slope, more) = accrual.most;
        if slope > self.capacity.0 - self.ahead.rate() {
            return None;
        }
        let first = self.unshaped(0)?;
        let corners = self.ahead.corners().chain([first]);
        let most = corners.map(|x| slope * x - self.sent_unshaped(x).max(0)).max();
        // What has recovered to nought may wait for the next whole nanosecond.
        most.map(|credit| credit + more + accrual.open)
    }

    /// The longest wait of a frame of `own` nanobits or more, among arrivals of which it is one:
    /// from being queued (and eligible) to the start of its transmission. Where transmissions may
    /// be interrupted, the interruptions of its own count as well: it is over by so much, and by
    /// the time that it takes of the wire.
    pub(crate) fn wait(&self, arrivals: &Curve, own: i128) -> Option<i128> {
        let before = if self.interrupted { 0 } else { own };
        let longest = self.longest(arrivals, before)?;
        Some(if self.interrupted { longest - own / self.wire } else { longest })
    }

    /// The longest from the arrival of a frame until all that came up to then is sent, but for
    /// `own` nanobits of it.
    fn longest(&self, arrivals: &Curve, own: i128) -> Option<i128> {
        if arrivals.rate() > self.rate() {
            return None;
        }
        let crossed =
            self.ahead.corners().filter_map(|x| arrivals.last_within(self.sent_unshaped(x) + own));
        let mut longest = 0;
        for t in arrivals.corners().chain(crossed.flat_map(|t| [t, t + 1])) {
            longest = longest.max(self.time_for(arrivals.at(t) - own)? - t);
        }
        Some(longest)
    }
}

/// An amount of traffic, at worst as much as it occupies of the wire when each frame's time is
/// rounded up to a whole nanosecond: the shorter the frames, the more. Where every octet takes
/// whole nanoseconds, nothing is.
pub(crate) fn rounded_up(amount: i128, rate: BitRate) -> i128 {
    if is_whole(rate) {
        return amount;
    }
    let rate = i128::from(rate.as_bps());
    let shortest_bits = i128::from(frame::on_wire(frame::MIN_UNTAGGED).get()) * 8;
    amount + div_ceil(amount * rate, shortest_bits * BILLION)
}

/// Whether every octet takes whole nanoseconds.
pub(crate) fn is_whole(rate: BitRate) -> bool {
    8 * BILLION % i128::from(rate.as_bps()) == 0
}
