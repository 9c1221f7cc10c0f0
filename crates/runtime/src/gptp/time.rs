//! Intervals in 2⁻¹⁶ ns, instants of the clocks that gPTP has to do with, ratios of their rates.

use onbeat_model::time::Span;
use std::ops::{Add, AddAssign, Neg, Sub};

/// Units of [`ScaledNs`] in a nanosecond.
const PER_NS: i128 = 1 << 16;

/// An interval in units of 2⁻¹⁶ ns (802.1AS-2020 6.4.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScaledNs(i128);

impl ScaledNs {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// An interval of `ns` nanoseconds.
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns as i128 * PER_NS)
    }
    /// An interval of so many 2⁻¹⁶ ns.
    pub const fn from_scaled(scaled: i128) -> Self {
        Self(scaled)
    }
    /// In units of 2⁻¹⁶ ns.
    pub const fn scaled(self) -> i128 {
        self.0
    }
    /// In whole nanoseconds, rounded towards −∞; what no [`Span`] holds becomes the nearest one.
    pub fn span(self) -> Span {
        let ns = self.0.div_euclid(PER_NS);
        Span::from_ns(ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }
    /// The interval without its sign.
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }
    /// A fraction of it, rounded towards −∞.
    pub fn over(self, divisor: i64) -> Self {
        Self(self.0.div_euclid(divisor.into()))
    }
    /// What a clock counts in this interval that runs faster than the one that counted it by
    /// `rate`, rounded towards −∞.
    pub fn at_rate(self, rate: RateOffset) -> Self {
        Self(self.0 + ((self.0 * i128::from(rate.0)) >> RateOffset::BITS))
    }
    /// What a clock counts in this interval of which the one that counted it runs faster by `rate`.
    pub fn before_rate(self, rate: RateOffset) -> Self {
        Self((self.0 << RateOffset::BITS).div_euclid(RateOffset::ONE + i128::from(rate.0)))
    }
}

impl From<Span> for ScaledNs {
    fn from(span: Span) -> Self {
        Self::from_ns(span.as_ns())
    }
}
impl Add for ScaledNs {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for ScaledNs {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for ScaledNs {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl Neg for ScaledNs {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

macro_rules! instant {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(ScaledNs);

        impl $name {
            /// The instant `ns` nanoseconds after the clock's epoch.
            pub const fn from_ns(ns: i64) -> Self {
                Self(ScaledNs::from_ns(ns))
            }
            /// The instant that long after the clock's epoch.
            pub const fn from_epoch(since: ScaledNs) -> Self {
                Self(since)
            }
            /// How long it is after the clock's epoch.
            pub const fn since_epoch(self) -> ScaledNs {
                self.0
            }
            /// Whole nanoseconds since the epoch, rounded towards −∞.
            pub fn as_ns(self) -> i64 {
                self.0.span().as_ns()
            }
        }
        impl Add<ScaledNs> for $name {
            type Output = Self;
            fn add(self, interval: ScaledNs) -> Self {
                Self(self.0 + interval)
            }
        }
        impl Sub<ScaledNs> for $name {
            type Output = Self;
            fn sub(self, interval: ScaledNs) -> Self {
                Self(self.0 - interval)
            }
        }
        impl Sub for $name {
            type Output = ScaledNs;
            fn sub(self, other: Self) -> ScaledNs {
                self.0 - other.0
            }
        }
    };
}

instant! {
    /// An instant of a node's own clock, which is free-running (802.1AS-2020 3.15, LocalClock): all
    /// time stamps and timeouts are of it.
    LocalClockTime
}
instant! {
    /// An instant of the time that is distributed, or one that a neighbour tells of its own clock.
    PtpTime
}

/// By how much one clock runs faster than another: (ratio − 1) · 2⁴¹, as in messages
/// (11.4.4.3.6, cumulativeScaledRateOffset).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateOffset(i64);

impl RateOffset {
    /// The same rate.
    pub const ZERO: Self = Self(0);
    const BITS: u32 = 41;
    const ONE: i128 = 1 << Self::BITS;

    /// From the number in a message.
    pub const fn from_scaled(scaled: i64) -> Self {
        Self(scaled)
    }
    /// The number for a message.
    pub const fn scaled(self) -> i64 {
        self.0
    }
    /// So many parts in 10⁹, rounded towards −∞.
    pub const fn from_ppb(ppb: i64) -> Self {
        Self((ppb as i128 * Self::ONE).div_euclid(1_000_000_000) as i64)
    }
    /// In parts in 10⁹, rounded towards −∞.
    pub const fn ppb(self) -> i64 {
        ((self.0 as i128 * 1_000_000_000) >> Self::BITS) as i64
    }
    /// How much faster a clock is that counted `mine` while another counted `theirs`; `None` if
    /// that is not between half as fast and twice as fast.
    pub fn between(mine: ScaledNs, theirs: ScaledNs) -> Option<Self> {
        let sane = theirs.0 > 0 && mine.0 >= theirs.0 / 2 && mine.0 <= theirs.0.saturating_mul(2);
        // Below 2⁸⁴: longer than any two instants of this crate are apart.
        (sane && theirs.0 < 1 << 84)
            .then(|| Self(((mine.0 - theirs.0) << Self::BITS).div_euclid(theirs.0) as i64))
    }
    /// The rate over two steps: of a clock against a second one, and of that against a third.
    pub fn then(self, other: Self) -> Self {
        let product = (i128::from(self.0) * i128::from(other.0)) >> Self::BITS;
        Self(self.0 + other.0 + product as i64)
    }
    /// The sum of two small changes of rate.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// Not beyond `limit` to either side.
    pub fn limited(self, limit: Self) -> Self {
        Self(self.0.clamp(-limit.0, limit.0))
    }
    /// The offset without its sign.
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }
}

/// The interval of which a message has the logarithm to base 2, in seconds; `None` outside of 2⁻⁷
/// to 2⁷ s, which no network uses: 127 is "none" (10.7.2).
pub fn log_interval(log: i8) -> Option<Span> {
    let second = 1_000_000_000_i64;
    match log {
        0..=7 => Some(Span::from_ns(second << log)),
        -7..=-1 => Some(Span::from_ns(second >> -log)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_rate_applied_and_taken_back_is_off_by_less_than_two_units(
            ns in -1_000_000_000_000_i64..1_000_000_000_000, ppb in -1_000_000_i64..1_000_000,
        ) {
            let (interval, rate) = (ScaledNs::from_ns(ns), RateOffset::from_ppb(ppb));
            let back = interval.at_rate(rate).before_rate(rate);
            let apart = (back - interval).abs();
            prop_assert!(apart <= ScaledNs::from_scaled(2), "{back:?} {interval:?}");
        }

        #[test]
        fn the_rate_between_two_counts_is_the_one_that_made_them(
            ns in 1_000_000_000_i64..1_000_000_000_000, ppb in -1_000_000_i64..1_000_000,
        ) {
            let theirs = ScaledNs::from_ns(ns);
            let rate = RateOffset::from_ppb(ppb);
            let found = RateOffset::between(theirs.at_rate(rate), theirs).expect("a sane ratio");
            prop_assert!((found.scaled() - rate.scaled()).abs() <= 1);
        }
    }

    #[test]
    fn intervals_of_messages_are_powers_of_two_of_a_second() {
        assert_eq!(log_interval(0), Some(Span::from_s(1)));
        assert_eq!(log_interval(-3), Some(Span::from_ms(125)));
        assert_eq!(log_interval(2), Some(Span::from_s(4)));
        assert_eq!([log_interval(127), log_interval(-128), log_interval(8)], [None; 3]);
    }

    #[test]
    fn rates_over_two_steps_multiply() {
        let (a, b) = (RateOffset::from_ppb(100_000), RateOffset::from_ppb(-100_000));
        // (1 + 10⁻⁴)(1 − 10⁻⁴) = 1 − 10⁻⁸.
        assert_eq!(a.then(b).ppb(), -11);
        assert_eq!(RateOffset::between(ScaledNs::from_ns(3), ScaledNs::from_ns(1)), None);
        assert_eq!(RateOffset::between(ScaledNs::from_ns(1), ScaledNs::ZERO), None);
    }
}
