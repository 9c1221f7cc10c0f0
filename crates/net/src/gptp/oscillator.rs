//! A node's own clock: a rate that wanders, piece by piece.

use crate::gptp::{Oscillator, Stamping, WANDER_INTERVAL};
use crate::random::{Purpose, Stream};
use onbeat_model::time::{NetTime, Span};
use onbeat_runtime::gptp::{Fine, FreeTime, RateOffset};

/// The clock with its present piece. Instants are asked for in order, but for what is around now.
#[derive(Debug)]
pub(super) struct FreeClock {
    model: Oscillator,
    from: NetTime,
    reading: FreeTime,
    rate: RateOffset,
    /// The wander so far, in parts in 10¹².
    wander_ppt: i64,
    random: Stream,
}

impl FreeClock {
    pub(super) fn new(model: Oscillator, seed: u64, node: usize) -> Self {
        let random = Stream::new(seed, Purpose::Oscillator, node);
        let reading = FreeTime::from_ns(model.start.as_ns());
        let rate = RateOffset::from_ppb(model.rate_ppb);
        Self { model, from: NetTime::ZERO, reading, rate, wander_ppt: 0, random }
    }

    /// What it reads; a wander that ends after `at` goes on as it is.
    pub(super) fn read(&mut self, at: NetTime) -> FreeTime {
        while at - self.from >= WANDER_INTERVAL {
            self.reading = self.extend(self.from + WANDER_INTERVAL);
            self.from += WANDER_INTERVAL;
            self.step();
        }
        self.extend(at)
    }

    /// The present piece, to both sides.
    fn extend(&self, at: NetTime) -> FreeTime {
        self.reading + Fine::from(at - self.from).at_rate(self.rate)
    }

    fn step(&mut self) {
        let (step, bound) = (self.model.wander_step_ppt, self.model.wander_max_ppb * 1_000);
        if step == 0 {
            return;
        }
        let drawn = self.random.below(2 * step as u64 + 1) as i64 - step;
        let wander = self.wander_ppt + drawn;
        // Back from the bound by what it went too far.
        self.wander_ppt = match wander {
            above if above > bound => 2 * bound - above,
            below if below < -bound => -2 * bound - below,
            within => within,
        };
        let ppt = i128::from(self.model.rate_ppb) * 1_000 + i128::from(self.wander_ppt);
        self.rate = RateOffset::from_scaled(((ppt << 41) / 1_000_000_000_000) as i64);
    }

    /// About when it reads this: with the present rate, and not before.
    pub(super) fn when(&self, reading: FreeTime) -> NetTime {
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
    pub(super) fn received(&mut self, clock: &mut FreeClock, at: NetTime) -> FreeTime {
        clock.read(at);
        let late = self.jitter();
        self.cut(clock.extend(at + late))
    }

    /// The stamp of what left: early by the jitter.
    pub(super) fn sent(&mut self, clock: &mut FreeClock, at: NetTime) -> FreeTime {
        clock.read(at);
        let early = self.jitter();
        self.cut(clock.extend(at - early))
    }

    fn jitter(&mut self) -> Span {
        Span::from_ns(self.random.below(self.model.jitter.as_ns() as u64 + 1) as i64)
    }

    fn cut(&self, reading: FreeTime) -> FreeTime {
        let (ns, grain) = (reading.as_ns(), self.model.granularity.as_ns());
        FreeTime::from_ns(ns - ns.rem_euclid(grain))
    }
}
