//! Time across stations: exact, because a cycle of 8 ns with a drift in ppb is a whole number of
//! attoseconds.

use onbeat_runtime::network_code::program::StationProgram;
use onbeat_runtime::network_code::timing::{CYCLE_NS, Medium};
use std::ops::{Add, AddAssign, Sub};

/// An instant of the network or a duration, in attoseconds (10⁻¹⁸ s). Sums are far from the ends of
/// the range: a round is shorter than 2³² cycles and at most some thousand rounds are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attoseconds(pub i128);

impl Attoseconds {
    /// Nanoseconds.
    pub fn ns(ns: u64) -> Self {
        Self(i128::from(ns) * 1_000_000_000)
    }

    /// So many units of `unit_ns` each, by a clock that drifts so.
    pub fn of(count: i64, unit_ns: u32, drift_ppb: i64) -> Self {
        Self(i128::from(count) * i128::from(unit_ns) * i128::from(1_000_000_000 + drift_ppb))
    }

    /// So many cycles by a clock that drifts so.
    pub fn cycles(count: i64, drift_ppb: i64) -> Self {
        Self::of(count, CYCLE_NS, drift_ppb)
    }

    /// Whole nanoseconds, rounded down.
    pub fn floor_ns(self) -> i64 {
        self.0.div_euclid(1_000_000_000) as i64
    }

    /// Whole nanoseconds, rounded up.
    pub fn ceil_ns(self) -> i64 {
        -(-self.0).div_euclid(1_000_000_000) as i64
    }

    /// In cycles of a clock that drifts so, rounded down.
    pub(super) fn floor_cycles(self, drift_ppb: i64) -> i64 {
        self.0.div_euclid(Self::cycles(1, drift_ppb).0) as i64
    }
}

impl Add for Attoseconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Attoseconds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Attoseconds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

/// From when to when something may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) min: Attoseconds,
    pub(super) max: Attoseconds,
}

impl Span {
    /// Cycles by a clock of which only the limit of the drift is known.
    pub(super) fn cycles(count: i64, drift_ppb_max: u32) -> Self {
        Self::of(count, CYCLE_NS, drift_ppb_max)
    }

    /// Units of `unit_ns` by such a clock.
    pub(super) fn of(count: i64, unit_ns: u32, drift_ppb_max: u32) -> Self {
        let fast = Attoseconds::of(count, unit_ns, -i64::from(drift_ppb_max));
        let slow = Attoseconds::of(count, unit_ns, i64::from(drift_ppb_max));
        Self { min: fast.min(slow), max: fast.max(slow) }
    }

    pub(super) fn ns(min: u64, max: u64) -> Self {
        Self { min: Attoseconds::ns(min), max: Attoseconds::ns(max) }
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { min: self.min + other.min, max: self.max + other.max }
    }
}

impl Sub for Span {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { min: self.min - other.max, max: self.max - other.min }
    }
}

/// The octets of a frame from the preamble on, whatever the rate.
pub(super) fn octets(program: &StationProgram, words: u16) -> i64 {
    Medium { octet_cycles: 1, ..program.medium }.frame_cycles(words).0 as i64
}

/// The octets from the preamble to the end of the EtherType.
pub(super) fn ethertype_octets(program: &StationProgram) -> i64 {
    Medium { octet_cycles: 1, ..program.medium }.ethertype_cycles().0 as i64
}

/// The octets behind a frame in which no other begins.
pub(super) fn gap_octets() -> i64 {
    Medium::GIGABIT.gap_cycles().0 as i64
}
