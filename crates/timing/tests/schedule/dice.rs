//! Random loads, from a seed.

use onbeat_model::time::Span;
use onbeat_timing::schedule::{EDF, Load, Section, Share};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
    /// From `least` to `most`, both possible.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        least + (self.0.next_u64() % (most - least + 1) as u64) as i64
    }
    pub(crate) fn chance(&mut self, per_cent: i64) -> bool {
        self.between(0, 99) < per_cent
    }
}

pub(crate) fn ns(ns: i64) -> Span {
    Span::from_ns(ns)
}

/// What random sets may have.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mix {
    pub(crate) jitter: bool,
    pub(crate) edf: bool,
    pub(crate) equals: bool,
    pub(crate) sections: bool,
    pub(crate) constrained: bool,
}

/// Up to five loads, each a line of its own, that use between a third and all of the time.
pub(crate) fn loads(dice: &mut Dice, mix: Mix) -> Vec<Load> {
    loop {
        let count = dice.between(2, 5);
        let mut all: Vec<Load> = (0..count).map(|at| load(dice, mix, at, count)).collect();
        if !(333_333..=1_000_000).contains(&Share::of(&all).ppm()) {
            continue;
        }
        if !mix.equals && !mix.edf {
            // Distinct, in any order.
            for at in (1..all.len()).rev() {
                let other = dice.between(0, at as i64) as usize;
                let (a, b) = (all[at].priority, all[other].priority);
                (all[at].priority, all[other].priority) = (b, a);
            }
        }
        return all;
    }
}

fn load(dice: &mut Dice, mix: Mix, at: i64, count: i64) -> Load {
    let period = dice.between(4, 40);
    let wcet = dice.between(1, (period * 2 / count).max(1));
    let deadline = match mix.constrained {
        true => dice.between(wcet, period),
        false => dice.between(wcet, 2 * period),
    };
    let priority = if mix.equals { dice.between(1, 3) } else { at + 1 };
    let priority = if mix.edf { EDF } else { priority as u32 };
    let mut load = Load::new(at as usize, priority, ns(wcet), ns(period), ns(deadline));
    if mix.jitter && dice.chance(50) {
        load.jitter = ns(dice.between(0, period + period / 2));
    }
    if mix.sections && dice.chance(70) {
        let length = ns(dice.between(1, wcet));
        let resource = dice.between(0, 1) as usize;
        load.sections.push(Section { resources: vec![resource], length });
    }
    load
}
