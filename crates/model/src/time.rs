//! Time: integer nanoseconds, one type per clock.
//!
//! [`NetTime`] is true network time (gPTP time on real hardware, engine time in emulation);
//! [`SyncedTime`] is what one node's copy of the network clock reads. Only [`ClockError`] converts
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
    SyncedTime
}

/// How one node's clock differs from true network time:
/// `reading = t + offset + drift · (t − since) + wander(t) + step(t)`. The wander is a triangular
/// wave, 0 at the epoch and rising first, that goes up to its amplitude and down to minus that in
/// each period. Only the step makes a clock go backwards, or pass over readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockError {
    /// The reading's error at the epoch; positive means the clock is ahead.
    pub offset: Span,
    /// The clock's rate error in parts per 10⁹; positive means it runs fast.
    pub drift_ppb: i32,
    /// From when on the drift counts: the epoch, unless a protocol steers the clock.
    pub since: NetTime,
    /// The amplitude of the wander, not negative; zero: none.
    pub wander: Span,
    /// The period of the wander, positive if there is any. Drift and the slope of the wander,
    /// which is four times the amplitude in each period, are together less than
    /// [`ClockError::MAX_DRIFT_PPB`]: no clock runs backwards.
    pub wander_period: Span,
    /// What is added to the reading for a while.
    pub step: ClockStep,
}

/// A clock reads `by` more from one instant until another one, without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockStep {
    /// How much more; zero: the clock does not step.
    pub by: Span,
    /// When it steps.
    pub from: NetTime,
    /// When it steps back, after `from`; the end of time if never.
    pub until: NetTime,
}

impl ClockStep {
    /// How much more the clock reads at `at`, since when, and until when.
    fn part(&self, at: NetTime) -> (NetTime, NetTime, Span) {
        let begin = NetTime::from_ns(i64::MIN);
        match at {
            _ if self.by == Span::ZERO => (begin, NetTime::MAX, Span::ZERO),
            _ if at < self.from => (begin, self.from, Span::ZERO),
            _ if at < self.until => (self.from, self.until, self.by),
            _ => (self.until, NetTime::MAX, Span::ZERO),
        }
    }

    /// When the clock steps next after `at`; the end of time if it does not.
    pub fn next(&self, at: NetTime) -> NetTime {
        self.part(at).1
    }
}

impl ClockError {
    /// The largest drift that a description may ask for: 1000 ppm, ten times 802.1AS's limit.
    pub const MAX_DRIFT_PPB: i32 = 1_000_000;

    /// The steepest slope of the wander in parts per 10⁹, rounded up.
    pub fn wander_ppb(&self) -> i64 {
        if self.wander == Span::ZERO {
            return 0;
        }
        let rise = i128::from(self.wander.as_ns()) * 4 * i128::from(PER_ONE);
        let period = i128::from(self.wander_period.as_ns());
        i64::try_from((rise + period - 1) / period).unwrap_or(i64::MAX)
    }

    /// The same clock if it did not step: what its oscillator says.
    pub fn unstepped(&self) -> Self {
        Self { step: ClockStep::default(), ..*self }
    }

    /// The same clock if it had always been as it is at `at`, and stepped no more.
    pub fn as_of(&self, at: NetTime) -> Self {
        Self { offset: self.offset + self.step.part(at).2, ..self.unstepped() }
    }

    /// What the node's clock reads at the true instant `at`. Drift and wander together round
    /// towards −∞.
    pub fn read(&self, at: NetTime) -> SyncedTime {
        let drift = i128::from((at - self.since).as_ns()) * i128::from(self.drift_ppb);
        let mut error = drift.div_euclid(PER_ONE.into()) as i64;
        if self.wander != Span::ZERO {
            let (wave, rest) = self.wave(at);
            // One rounding for the sum: two would let the reading fall by a nanosecond.
            let rest = rest * i128::from(PER_ONE);
            let period = i128::from(self.wander_period.as_ns());
            let both = drift.rem_euclid(PER_ONE.into()) * period + rest;
            error += wave + i64::from(both >= i128::from(PER_ONE) * period);
        }
        SyncedTime::from_ns(at.as_ns() + self.offset.as_ns() + error) + self.step.part(at).2
    }

    /// The wander at `at`, rounded towards −∞, and what that leaves, in parts of the period.
    fn wave(&self, at: NetTime) -> (i64, i128) {
        let period = self.wander_period.as_ns();
        let amplitude = i128::from(self.wander.as_ns());
        let since = i128::from(at.as_ns().rem_euclid(period));
        let period = i128::from(period);
        let times_period = match 4 * since {
            rising if rising <= period => rising * amplitude,
            falling if falling <= 3 * period => (2 * period - falling) * amplitude,
            rising => (rising - 4 * period) * amplitude,
        };
        (times_period.div_euclid(period) as i64, times_period.rem_euclid(period))
    }

    /// The earliest true instant at or after `now` at which the node's clock reads `reading` or
    /// later: when who sleeps until then since `now` wakes, as clock_nanosleep(2) has it of a clock
    /// that is set meanwhile.
    pub fn when_from(&self, now: NetTime, reading: SyncedTime) -> NetTime {
        if self.step.by == Span::ZERO {
            return self.when(reading).max(now);
        }
        let mut now = now;
        loop {
            let (_, until, _) = self.step.part(now);
            let at = self.as_of(now).when(reading).max(now);
            if at < until || until == NetTime::MAX {
                return at;
            }
            now = until;
        }
    }

    /// When the node's clock reads `reading` from `now` on, or when it did, by the clock as it is
    /// now, if it reads more.
    pub fn when_near(&self, now: NetTime, reading: SyncedTime) -> NetTime {
        match reading < self.read(now) {
            true => self.as_of(now).when(reading),
            false => self.when_from(now, reading),
        }
    }

    /// Whether the clock, which at `at` for the first time reads `reading` or later, stepped over
    /// it.
    pub fn steps_over(&self, reading: SyncedTime, at: NetTime) -> bool {
        let (from, ..) = self.step.part(at);
        from > NetTime::from_ns(i64::MIN) && self.as_of(at).when(reading) < from
    }

    /// The earliest true instant at which the node's clock, which does not step, reads `reading` or
    /// later.
    pub fn when(&self, reading: SyncedTime) -> NetTime {
        debug_assert!(self.step.by == Span::ZERO, "when depends on from when on");
        if *self == Self::default() {
            return NetTime::from_ns(reading.as_ns());
        }
        // Without the wander, the answer would be off by the amplitude at most, stretched by the
        // drift; the rounding of `read` moves it by at most two nanoseconds either way.
        let margin = 2 * self.wander.as_ns() + 3;
        let guess = self.when_without_wander(reading);
        let (mut before, mut after) = (guess - margin, guess + margin);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            match self.read(NetTime::from_ns(middle)) >= reading {
                true => after = middle,
                false => before = middle,
            }
        }
        NetTime::from_ns(after)
    }

    fn when_without_wander(&self, reading: SyncedTime) -> i64 {
        let since = i128::from(self.since.as_ns());
        let passed = i128::from(reading.as_ns() - self.offset.as_ns()) - since;
        let rate = i128::from(PER_ONE) + i128::from(self.drift_ppb);
        (since + (passed * i128::from(PER_ONE)).div_euclid(rate)) as i64
    }

    /// The largest error of a reading at any instant from the epoch to `until`, rounded up.
    pub fn max_abs(&self, until: NetTime) -> Span {
        let error = |ns: i64| {
            let at = NetTime::from_ns(ns.clamp(0, until.as_ns()));
            (self.read(at) - SyncedTime::from_ns(at.as_ns())).abs()
        };
        let ends = error(0).max(error(until.as_ns()));
        if self.wander == Span::ZERO {
            return ends;
        }
        // The error is a straight line from turn to turn of the wander, and from one high or low
        // turn to the next it changes one way: the first and the last of each are the extremes.
        let period = self.wander_period.as_ns();
        let turn = |quarters: i128| {
            let first = (i128::from(period) * quarters / 4) as i64;
            let last = first + (until.as_ns() - first).max(0) / period * period;
            let near = |at: i64| error(at).max(error(at + 1)).max(error(at - 1));
            near(first).max(near(last)).max(near(last - period))
        };
        ends.max(turn(1)).max(turn(3))
    }
}

/// Parts per 10⁹.
const PER_ONE: i64 = 1_000_000_000;

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
            let clock =
                ClockError { offset: Span::from_ns(offset), drift_ppb, ..ClockError::default() };
            let target = SyncedTime::from_ns(target);
            let at = clock.when(target);
            prop_assert!(clock.read(at) >= target);
            prop_assert!(clock.read(at - Span::from_ns(1)) < target);
        }

        #[test]
        fn a_wandering_clock_never_runs_backwards_and_when_is_the_earliest_instant(
            clock in wandering(),
            target in -1_000_000_000i64..1_000_000_000_000_000,
            start in 0i64..1_000_000_000_000,
        ) {
            let target = SyncedTime::from_ns(target);
            let at = clock.when(target);
            prop_assert!(clock.read(at) >= target);
            prop_assert!(clock.read(at - Span::from_ns(1)) < target);
            let readings = (start..start + 2_000).map(|ns| clock.read(NetTime::from_ns(ns)));
            prop_assert!(readings.collect::<Vec<_>>().is_sorted());
        }

        /// Every instant and reading around a small step, one by one.
        #[test]
        fn a_sleeper_of_a_clock_that_steps_wakes_at_the_first_instant_that_reads_enough(
            clock in stepping(),
            now in -50i64..250,
            reading in -150i64..350,
        ) {
            let (now, reading) = (NetTime::from_ns(now), SyncedTime::from_ns(reading));
            let unstepped = |ns| clock.unstepped().read(NetTime::from_ns(ns));
            let during = |ns| {
                (clock.step.from.as_ns()..clock.step.until.as_ns()).contains(&ns)
            };
            let read = |ns| unstepped(ns) + if during(ns) { clock.step.by } else { Span::ZERO };
            for ns in -100..400 {
                prop_assert_eq!(clock.read(NetTime::from_ns(ns)), read(ns));
            }
            let first = (now.as_ns()..2_000).find(|ns| read(*ns) >= reading);
            let at = clock.when_from(now, reading);
            prop_assert_eq!(Some(at.as_ns()), first);
            // It stepped over what a clock that always was as it is then would have read before.
            let begin = [clock.step.from, clock.step.until].into_iter().filter(|s| *s <= at).max();
            let over = begin.is_some_and(|begin| {
                clock.as_of(at).read(begin - Span::from_ns(1)) >= reading
            });
            prop_assert_eq!(clock.steps_over(reading, at), over);
            prop_assert_eq!(clock.as_of(at).read(at), clock.read(at));
            let next = (at.as_ns() + 1..2_000)
                .find(|ns| during(*ns) != during(ns - 1))
                .map_or(NetTime::MAX, NetTime::from_ns);
            prop_assert_eq!(clock.step.next(at), next);
        }

        #[test]
        fn the_largest_error_is_reached_and_never_exceeded(
            clock in wandering(),
            until in 0i64..20_000,
        ) {
            let mut clock = clock;
            clock.wander_period = Span::from_ns(clock.wander_period.as_ns() % 10_000 + 4_000);
            clock.wander = Span::from_ns(clock.wander.as_ns() % 4);
            clock.offset = Span::from_ns(clock.offset.as_ns() % 5);
            let error = |ns| clock.read(NetTime::from_ns(ns)) - SyncedTime::from_ns(ns);
            let largest = (0..=until).map(|ns| error(ns).abs()).max();
            prop_assert_eq!(largest, Some(clock.max_abs(NetTime::from_ns(until))));
        }
    }

    /// A clock that steps by little, and back soon or never.
    fn stepping() -> impl Strategy<Value = ClockError> {
        let until = prop_oneof![Just(NetTime::MAX), (1..150i64).prop_map(NetTime::from_ns)];
        let by = prop_oneof![-100..0i64, 1..100i64];
        let drift = prop_oneof![Just(0), Just(-1_000_000), Just(1_000_000)];
        (by, 0..100i64, until, -20..20i64, drift).prop_map(
            |(by, from, until, offset, drift_ppb)| {
                let until = NetTime::from_ns(until.as_ns().saturating_add(from));
                let (by, from) = (Span::from_ns(by), NetTime::from_ns(from));
                let step = ClockStep { by, from, until };
                ClockError {
                    offset: Span::from_ns(offset),
                    drift_ppb,
                    step,
                    ..ClockError::default()
                }
            },
        )
    }

    /// Any clock that a description may have.
    fn wandering() -> impl Strategy<Value = ClockError> {
        (-1_000_000_000i64..1_000_000_000, -500_000..500_000, 1..1_000_000i64, 0..1_000_000_000i64)
            .prop_map(|(offset, drift_ppb, wander, more)| ClockError {
                offset: Span::from_ns(offset),
                drift_ppb,
                wander: Span::from_ns(wander),
                // 4 · amplitude in a period is 500 ppm at most.
                wander_period: Span::from_ns(wander * 8_000 + more),
                ..ClockError::default()
            })
    }

    #[test]
    fn wander_rises_falls_and_comes_back_in_one_period() {
        let (wander, wander_period) = (Span::from_ns(100), Span::from_ms(1));
        let clock = ClockError { wander, wander_period, ..ClockError::default() };
        // A quarter of the period up, half of it down, a quarter up: 1 ns in 2500.
        for (at, error) in [
            (0, 0),
            (2_500, 1),
            (4_999, 1),
            (250_000, 100),
            (252_500, 99),
            (500_000, 0),
            (500_001, -1),
            (750_000, -100),
            (1_000_000, 0),
            (1_250_000, 100),
        ] {
            assert_eq!(clock.read(NetTime::from_ns(at)).as_ns(), at + error, "{at}");
        }
        assert_eq!(clock.wander_ppb(), 400_000);
        assert_eq!(clock.max_abs(NetTime::from_ns(2_500)), Span::from_ns(1));
        assert_eq!(clock.max_abs(NetTime::from_ns(9_000_000)), Span::from_ns(100));
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
