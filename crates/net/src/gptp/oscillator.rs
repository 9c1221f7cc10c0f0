//! A node's own clock: a rate that wanders, piece by piece.

use crate::gptp::{FREQUENCY_DRIFT_INTERVAL, Oscillator, Stamping};
use crate::random::{Purpose, Stream};
use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::gptp::{LocalClockTime, RateOffset, ScaledNs};

/// The clock with its present piece. Instants are asked for in order, but for what is around now.
#[derive(Debug)]
pub(super) struct LocalClock {
    model: Oscillator,
    from: NetTime,
    reading: LocalClockTime,
    rate: RateOffset,
    /// The wander so far, in parts in 10¹².
    drift_ppt: i64,
    random: Stream,
}

impl LocalClock {
    pub(super) fn new(model: Oscillator, seed: u64, node: usize) -> Self {
        let random = Stream::new(seed, Purpose::Oscillator, node);
        let reading = LocalClockTime::from_ns(model.start.as_ns());
        let rate = RateOffset::from_ppb(model.rate_ppb);
        Self { model, from: NetTime::ZERO, reading, rate, drift_ppt: 0, random }
    }

    /// What it reads; a wander that ends after `at` continues as it is.
    pub(super) fn read(&mut self, at: NetTime) -> LocalClockTime {
        while at - self.from >= FREQUENCY_DRIFT_INTERVAL {
            self.reading = self.extend(self.from + FREQUENCY_DRIFT_INTERVAL);
            self.from += FREQUENCY_DRIFT_INTERVAL;
            self.step();
        }
        self.extend(at)
    }

    /// How much faster it runs now than true time.
    pub(super) fn rate(&self) -> RateOffset {
        self.rate
    }

    /// The present piece, to both sides.
    fn extend(&self, at: NetTime) -> LocalClockTime {
        self.reading + ScaledNs::from(at - self.from).at_rate(self.rate)
    }

    fn step(&mut self) {
        let (step, bound) =
            (self.model.frequency_drift_ppt, self.model.frequency_drift_max_ppb * 1_000);
        if step == 0 {
            return;
        }
        let drawn = self.random.below(2 * step as u64 + 1) as i64 - step;
        let wander = self.drift_ppt + drawn;
        // Back from the bound by what it went too far.
        self.drift_ppt = match wander {
            above if above > bound => 2 * bound - above,
            below if below < -bound => -2 * bound - below,
            within => within,
        };
        let ppt = i128::from(self.model.rate_ppb) * 1_000 + i128::from(self.drift_ppt);
        self.rate = RateOffset::from_scaled(((ppt << 41) / 1_000_000_000_000) as i64);
    }

    /// About when it reads this: with the present rate, and not before.
    pub(super) fn when(&self, reading: LocalClockTime) -> NetTime {
        self.from + (reading - self.reading).before_rate(self.rate).span() + Span::from_ns(1)
    }
}

/// What makes time stamps of readings.
#[derive(Debug)]
pub(super) struct Stamper {
    model: Stamping,
    random: Stream,
}

impl Stamper {
    pub(super) fn new(model: Stamping, seed: u64, node: usize) -> Self {
        Self { model, random: Stream::new(seed, Purpose::TimeStamp, node) }
    }

    /// The stamp of what came at an instant: late by the jitter.
    pub(super) fn received(&mut self, clock: &mut LocalClock, at: NetTime) -> LocalClockTime {
        clock.read(at);
        let late = self.jitter();
        self.cut(clock.extend(at + late))
    }

    /// The stamp of what left: early by the jitter.
    pub(super) fn sent(&mut self, clock: &mut LocalClock, at: NetTime) -> LocalClockTime {
        clock.read(at);
        let early = self.jitter();
        self.cut(clock.extend(at - early))
    }

    fn jitter(&mut self) -> Span {
        Span::from_ns(self.random.below(self.model.jitter.as_ns() as u64 + 1) as i64)
    }

    fn cut(&self, reading: LocalClockTime) -> LocalClockTime {
        let (ns, grain) = (reading.as_ns(), self.model.granularity.as_ns());
        LocalClockTime::from_ns(ns - ns.rem_euclid(grain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wandering_clock_runs_forwards_and_its_rate_stays_within_its_bounds() {
        let model = Oscillator {
            start: Span::from_s(5),
            rate_ppb: -40_000,
            frequency_drift_ppt: 90_000,
            frequency_drift_max_ppb: 100,
        };
        let mut clock = LocalClock::new(model, 1, 0);
        let mut before = clock.read(NetTime::ZERO);
        assert_eq!(before, LocalClockTime::from_ns(5_000_000_000));
        let mut rates = Vec::new();
        for step in 1..5_000 {
            let now = clock.read(NetTime::ZERO + Span::from_ms(10) * step);
            let rate = RateOffset::between(now - before, ScaledNs::from_ns(10_000_000));
            rates.push(rate.expect("a sane rate").ppb());
            before = now;
        }
        let (low, high) = (rates.iter().min(), rates.iter().max());
        assert!(rates.iter().all(|rate| (-40_101..=-39_899).contains(rate)), "{low:?} {high:?}");
        assert!(low < Some(&-40_080) && high > Some(&-39_920), "{low:?} {high:?}");
        // The inverse is not before, and less than 2 ns after.
        let at = clock.when(before + ScaledNs::from_ns(1_000));
        assert!(clock.read(at) >= before + ScaledNs::from_ns(1_000));
        assert!(clock.read(at) <= before + ScaledNs::from_ns(1_002));
    }

    #[test]
    fn stamps_are_late_or_early_by_the_jitter_at_most_and_cut_to_the_granularity() {
        let model = Oscillator {
            start: Span::ZERO,
            rate_ppb: 0,
            frequency_drift_ppt: 0,
            frequency_drift_max_ppb: 0,
        };
        let mut clock = LocalClock::new(model, 1, 0);
        let (granularity, jitter) = (Span::from_ns(8), Span::from_ns(20));
        let mut stamper = Stamper::new(Stamping { granularity, jitter }, 1, 0);
        for ns in 1_000..3_000 {
            let at = NetTime::from_ns(ns);
            let received = stamper.received(&mut clock, at).as_ns();
            let sent = stamper.sent(&mut clock, at).as_ns();
            assert!(received % 8 == 0 && (ns - 7..=ns + 20).contains(&received), "{received} {ns}");
            assert!(sent % 8 == 0 && (ns - 27..=ns).contains(&sent), "{sent} {ns}");
        }
    }
}
