//! Worst cases by network calculus; `docs/bounds.md` has the derivation.
//!
//! Exact integers, rounded to the safe side. Amounts of traffic are in nanobits (10⁻⁹ bit), so
//! that bits per second times nanoseconds is one without rounding.

pub(crate) mod arrival;
pub(crate) mod bound;
pub(crate) mod coincidence;
pub(crate) mod curve;
pub(crate) mod flow;
pub(crate) mod gates;
mod interference;
mod limits;
pub(crate) mod multi_hop;
pub(crate) mod network;
pub(crate) mod queue;
mod reason;
pub(crate) mod service;
pub(crate) mod windows;

/// Nanoseconds in a second, nanobits in a bit.
pub(crate) const BILLION: i128 = 1_000_000_000;

/// Quotient of a non-negative number and a positive one, rounded up.
pub(crate) fn div_ceil(a: i128, b: i128) -> i128 {
    debug_assert!(a >= 0 && b > 0);
    (a + b - 1) / b
}
