//! The synchronised clock of a node: a straight clock over its own clock, bent with every
//! measurement so that the offset from the grandmaster goes to zero.
//!
//! The clock is set once. After that only its rate changes, within limits below 1: readings never
//! step and never go back, whatever the network says.

use crate::gptp::time::{LocalClockTime, PtpTime, RateOffset, ScaledNs};
use onbeat_model::time::Span;

/// Synchronised time as a straight clock over the node's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearClock {
    /// From when on.
    pub from: LocalClockTime,
    /// What it reads then.
    pub reading: PtpTime,
    /// How much faster it runs than the node's own clock.
    pub rate: RateOffset,
}

impl LinearClock {
    /// What the synchronised clock reads, rounded towards −∞.
    pub fn read(&self, at: LocalClockTime) -> PtpTime {
        self.reading + (at - self.from).at_rate(self.rate)
    }

    /// When, on the node's own clock, the synchronised clock reads this.
    pub fn when(&self, reading: PtpTime) -> LocalClockTime {
        self.from + (reading - self.reading).before_rate(self.rate)
    }

    /// Continues from `at` with another rate.
    fn bent(&self, at: LocalClockTime, rate: RateOffset) -> Self {
        Self { from: at, reading: self.read(at), rate }
    }
}

/// How fast the servo follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServoSettings {
    /// Which part of a measured offset is removed until the next measurement, in 1/1024.
    pub proportional: i64,
    /// Which part of it, per interval, is taken for an error of the rate, in 1/1024.
    pub integral: i64,
    /// The most by which the synchronised clock's rate differs from that of the node's own clock.
    pub rate_max: RateOffset,
}

impl Default for ServoSettings {
    /// A time constant of 16 measurements, damped with 1/√2 (4 · integral = 2 · proportional²):
    /// noise of time stamps is filtered, the wander of a crystal is followed. At most 500 ppm: what
    /// two clocks within the standard's 100 ppm (B.1.1) may differ, and some more to slew with.
    fn default() -> Self {
        Self { proportional: 64, integral: 2, rate_max: RateOffset::from_ppb(500_000) }
    }
}

/// The clock and what adjusts it.
#[derive(Clone, Debug)]
pub struct Servo {
    settings: ServoSettings,
    clock: Option<LinearClock>,
    /// The grandmaster's rate against the node's own clock, as far as it is known: what holds when
    /// there is no grandmaster.
    drift: RateOffset,
    last_offset: Option<ScaledNs>,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// When a Sync came.
    pub at: LocalClockTime,
    /// The grandmaster's time then.
    pub grandmaster: PtpTime,
    /// The grandmaster's rate against the node's own clock, as the relays report it.
    pub rate: RateOffset,
    /// How long until the next measurement is expected.
    pub interval: Span,
}

/// Larger offsets are corrected as this one is: with the largest rate. Keeps products within
/// 128 bits.
const OFFSET_MAX: i128 = 1 << 60;

impl Servo {
    /// A clock that is not set.
    pub fn new(settings: ServoSettings) -> Self {
        Self { settings, clock: None, drift: RateOffset::ZERO, last_offset: None }
    }

    /// The synchronised clock, if it was ever set.
    pub fn clock(&self) -> Option<&LinearClock> {
        self.clock.as_ref()
    }

    /// How far the grandmaster was ahead at the last measurement.
    pub fn last_offset(&self) -> Option<ScaledNs> {
        self.last_offset
    }

    /// Sets the clock by itself, to go with the node's own clock and ahead of it; nothing if it is
    /// set.
    pub fn set_free(&mut self, now: LocalClockTime, ahead: ScaledNs) -> Option<LinearClock> {
        if self.clock.is_some() {
            return None;
        }
        let reading = PtpTime::from_epoch(now.since_epoch() + ahead);
        self.clock = Some(LinearClock { from: now, reading, rate: RateOffset::ZERO });
        self.clock
    }

    /// Follows a measurement from `now` on: the first sets the clock, others change its rate.
    pub fn follow(&mut self, now: LocalClockTime, measured: &Measurement) -> LinearClock {
        let Some(clock) = self.clock else {
            self.drift = measured.rate.limited(self.settings.rate_max);
            let reading = measured.grandmaster + (now - measured.at).at_rate(self.drift);
            let clock = LinearClock { from: now, reading, rate: self.drift };
            self.last_offset = Some(ScaledNs::ZERO);
            self.clock = Some(clock);
            return clock;
        };
        let offset = measured.grandmaster - clock.read(measured.at);
        self.last_offset = Some(offset);
        let bounded = offset.scaled().clamp(-OFFSET_MAX, OFFSET_MAX);
        // What the rate must differ to remove all of the offset in one interval, in 2⁻⁴¹.
        let whole = (bounded << 41) / ScaledNs::from(measured.interval).scaled().max(1);
        let part = |of_1024: i64| {
            let part = (whole * i128::from(of_1024)) >> 10;
            RateOffset::from_scaled(part.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
        };
        let limit = self.settings.rate_max;
        let wanted = self.drift.plus(part(self.settings.proportional));
        // At the limit, the offset says nothing of the rate.
        if wanted.limited(limit) == wanted {
            self.drift = self.drift.plus(part(self.settings.integral)).limited(limit);
        }
        let clock = clock.bent(now, wanted.limited(limit));
        self.clock = Some(clock);
        clock
    }

    /// Continues at the grandmaster's last rate; nothing if the clock is not set, or does so
    /// already.
    pub fn hold(&mut self, now: LocalClockTime) -> Option<LinearClock> {
        let clock = self.clock.filter(|clock| clock.rate != self.drift)?;
        self.clock = Some(clock.bent(now, self.drift));
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measurement(at: LocalClockTime, grandmaster: PtpTime) -> Measurement {
        let interval = Span::from_ms(125);
        Measurement { at, grandmaster, rate: RateOffset::ZERO, interval }
    }

    #[test]
    fn a_clock_converges_to_a_grandmaster_of_another_rate_and_holds_its_rate() {
        let true_rate = RateOffset::from_ppb(73_000);
        let mut servo = Servo::new(ServoSettings::default());
        let grandmaster = |at: LocalClockTime| {
            PtpTime::from_ns(5_000_000_000) + (at - LocalClockTime::from_ns(0)).at_rate(true_rate)
        };
        let mut at = LocalClockTime::from_ns(0);
        for _ in 0..800 {
            at = at + ScaledNs::from_ns(125_000_000);
            servo.follow(at, &measurement(at, grandmaster(at)));
        }
        servo.hold(at);
        let clock = *servo.clock().expect("it is set");
        assert!((clock.rate.ppb() - 73_000).abs() < 5, "{clock:?}");
        let later = at + ScaledNs::from_ns(1_000_000_000);
        let error = (clock.read(later) - grandmaster(later)).span().abs();
        assert!(error < Span::from_ns(20), "{error}");
    }

    proptest! {
        #[test]
        fn whatever_is_measured_the_clock_never_goes_back_nor_faster_than_the_limit(
            samples in prop::collection::vec(
                (1_i64..2_000_000_000, any::<i64>(), any::<i32>(), 0_i64..1_000_000), 1..60),
        ) {
            let mut servo = Servo::new(ServoSettings::default());
            let mut now = LocalClockTime::from_ns(0);
            let mut last: Option<(LocalClockTime, PtpTime)> = None;
            for (step, grandmaster, rate, late) in samples {
                now = now + ScaledNs::from_ns(step);
                let before = servo.clock().map(|clock| clock.read(now));
                let then = now - ScaledNs::from_ns(late);
                let mut m = measurement(then, PtpTime::from_ns(grandmaster));
                m.rate = RateOffset::from_scaled(rate.into());
                let clock = servo.follow(now, &m);
                let reading = clock.read(now);
                prop_assert!(before.is_none_or(|before| before == reading));
                if let Some((then, read)) = last {
                    let (passed, went) = ((now - then).scaled(), (reading - read).scaled());
                    prop_assert!((went - passed).abs() <= passed / 1_999 + 2);
                }
                last = Some((now, reading));
            }
        }
    }
}
