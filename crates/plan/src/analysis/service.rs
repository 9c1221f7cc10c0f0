//! What a port with credit-based shapers (802.1Q-2018 8.6.8.2) gives a class at least.

use super::div_ceil;
use onbeat_model::plan::PortPlan;
use onbeat_model::system::Class;
use onbeat_model::time::Span;
use onbeat_model::units::{BitRate, Octets, frame};

const BILLION: i128 = 1_000_000_000;

/// A rate-latency service curve: at least `slope · (t − latency)⁺`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// The longest time without service.
    pub(crate) latency: Span,
    /// The class's idleSlope in b/s.
    pub(crate) slope: i128,
}

impl Service {
    /// The service of an SR class at a port of rate `rate` that reserves `plan`, where class A's
    /// largest frame occupies `largest_a` of the wire. Any lower class is taken to send frames
    /// of the greatest length. None when transmission times in whole nanoseconds leave no room
    /// for what is reserved, at hundreds of gigabits per second.
    pub(crate) fn new(
        class: Class,
        rate: BitRate,
        plan: &PortPlan,
        largest_a: Octets,
    ) -> Option<Self> {
        let lower = rate.time_for(frame::on_wire(frame::MAX_TAGGED));
        let capacity = i128::from(rate.as_bps());
        let slope_a = i128::from(plan.idle_slope(Class::A).as_bps());
        let slope_b = i128::from(plan.idle_slope(Class::B).as_bps());
        let left = capacity - rounded_up(slope_a, capacity);
        if left < rounded_up(slope_b, capacity) {
            return None;
        }
        if class == Class::A {
            return Some(Self { latency: lower, slope: slope_a });
        }
        let largest_a = i128::from(largest_a.get()) * 8 * BILLION;
        let burst_a =
            rounded_up(largest_a, capacity) - rounded_up(slope_a, capacity) * largest_a / capacity;
        let latency = div_ceil(capacity * i128::from(lower.as_ns()) + burst_a, left);
        Some(Self { latency: Span::from_ns(i64::try_from(latency).ok()?), slope: slope_b })
    }
}

/// An amount of traffic, at worst as much as it occupies of the wire when each frame's time is
/// rounded up to a whole nanosecond: the shorter the frames, the more. Where every octet takes
/// whole nanoseconds, nothing is.
fn rounded_up(amount: i128, capacity: i128) -> i128 {
    if 8 * BILLION % capacity == 0 {
        return amount;
    }
    let shortest_bits = i128::from(frame::on_wire(frame::MIN_TAGGED).get()) * 8;
    amount + div_ceil(amount * capacity, shortest_bits * BILLION)
}
