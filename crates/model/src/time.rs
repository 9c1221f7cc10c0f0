//! Time: integer nanoseconds, one type per clock.
//!
//! [`NetTime`] is true network time (gPTP time on real hardware, engine time in emulation);
//! [`LocalTime`] is what one node's copy of the network clock reads. Only [`ClockError`] converts
//! between them. [`Span`] is the difference of two instants of one clock, or a plain duration.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

/// A signed duration in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest representable duration, about 292 years.
    pub const MAX: Self = Self(i64::MAX);

    /// A duration of `ns` nanoseconds.
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }
    /// A duration of `us` microseconds.
    pub const fn from_us(us: i64) -> Self {
        Self(us * 1_000)
    }
    /// A duration of `ms` milliseconds.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms * 1_000_000)
    }
    /// A duration of `s` seconds.
    pub const fn from_s(s: i64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// The duration in nanoseconds.
    pub const fn as_ns(self) -> i64 {
        self.0
    }
    /// The duration without its sign.
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}
impl Mul<i64> for Span {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        Self(self.0 * factor)
    }
}
impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}
/// Prints with the largest unit that keeps the number readable: `12.304 µs`, `2 ms`, `64 ns`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (unit_ns, unit) = match magnitude {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let sign = if self.0 < 0 { "-" } else { "" };
        let whole = magnitude / unit_ns;
        let rest = magnitude % unit_ns * 1_000 / unit_ns;
        if rest == 0 {
            return write!(f, "{sign}{whole} {unit}");
        }
        let digits = format!("{rest:03}");
        write!(f, "{sign}{whole}.{} {unit}", digits.trim_end_matches('0'))
    }
}

macro_rules! instant {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(i64);

        impl $name {
            /// The clock's epoch. In emulation this is the common start of the run.
            pub const ZERO: Self = Self(0);
            /// Later than every other instant.
            pub const MAX: Self = Self(i64::MAX);

            /// The instant `ns` nanoseconds after the epoch.
            pub const fn from_ns(ns: i64) -> Self {
                Self(ns)
            }
            /// Nanoseconds since the epoch.
            pub const fn as_ns(self) -> i64 {
                self.0
            }
        }
        impl Add<Span> for $name {
            type Output = Self;
            fn add(self, span: Span) -> Self {
                Self(self.0 + span.as_ns())
            }
        }
        impl AddAssign<Span> for $name {
            fn add_assign(&mut self, span: Span) {
                self.0 += span.as_ns();
            }
        }
        impl Sub<Span> for $name {
            type Output = Self;
            fn sub(self, span: Span) -> Self {
                Self(self.0 - span.as_ns())
            }
        }
        impl Sub for $name {
            type Output = Span;
            fn sub(self, other: Self) -> Span {
                Span::from_ns(self.0 - other.0)
            }
        }
    };
}

instant! {
    /// An instant of true network time, in nanoseconds since the network's epoch.
    NetTime
}
instant! {
    /// A reading of one node's copy of the network clock, in nanoseconds since the same epoch.
    LocalTime
}

/// How one node's clock differs from true network time: `reading = t + offset + drift · t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockError {
    /// The reading's error at the epoch; positive means the clock is ahead.
    pub offset: Span,
    /// The clock's rate error in parts per 10⁹; positive means it runs fast.
    pub drift_ppb: i32,
}

impl ClockError {
    /// The largest drift that a description may ask for: 1000 ppm, ten times 802.1AS's limit.
    pub const MAX_DRIFT_PPB: i32 = 1_000_000;

    /// What the node's clock reads at the true instant `at`. The drift term rounds towards −∞.
    pub fn read(&self, at: NetTime) -> LocalTime {
        let drift = i128::from(at.as_ns()) * i128::from(self.drift_ppb);
        let drift_ns = drift.div_euclid(1_000_000_000) as i64;
        LocalTime::from_ns(at.as_ns() + self.offset.as_ns() + drift_ns)
    }

    /// The earliest true instant at which the node's clock reads `reading` or later.
    pub fn when(&self, reading: LocalTime) -> NetTime {
        let since = i128::from(reading.as_ns() - self.offset.as_ns());
        let rate = 1_000_000_000 + i128::from(self.drift_ppb);
        let guess = (since * 1_000_000_000).div_euclid(rate) as i64;
        let mut at = NetTime::from_ns(guess - 2);
        // The rounding of `read` moves the answer by at most two nanoseconds either way.
        while self.read(at) < reading {
            at += Span::from_ns(1);
        }
        at
    }

    /// The largest error of a reading at any instant from the epoch to `until`, rounded up.
    pub fn max_abs(&self, until: NetTime) -> Span {
        let end = self.read(until) - LocalTime::from_ns(until.as_ns());
        self.offset.abs().max(end.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn when_is_the_earliest_instant_that_reads_at_least_the_target(
            offset in -1_000_000_000i64..1_000_000_000,
            drift_ppb in -ClockError::MAX_DRIFT_PPB..ClockError::MAX_DRIFT_PPB,
            target in -1_000_000_000i64..1_000_000_000_000_000,
        ) {
            let clock = ClockError { offset: Span::from_ns(offset), drift_ppb };
            let target = LocalTime::from_ns(target);
            let at = clock.when(target);
            prop_assert!(clock.read(at) >= target);
            prop_assert!(clock.read(at - Span::from_ns(1)) < target);
        }
    }

    #[test]
    fn a_span_prints_in_the_unit_that_reads_best() {
        for (ns, text) in [
            (0, "0 ns"),
            (64, "64 ns"),
            (12_304, "12.304 µs"),
            (2_000_000, "2 ms"),
            (-17_400, "-17.4 µs"),
            (300_000_000_000, "300 s"),
        ] {
            assert_eq!(Span::from_ns(ns).to_string(), text);
        }
    }
}
