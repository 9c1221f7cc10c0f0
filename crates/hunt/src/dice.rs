//! Randomness from a seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random choices: the same seed means the same choices on every machine.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From `0..count`; `count` is not 0.
    pub fn below(&mut self, count: u64) -> u64 {
        self.bits() % count
    }

    /// Both ends included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.below((most - least + 1) as u64) as i64
    }

    /// Between the ends, small and large magnitudes alike; `least` is at least 1.
    pub fn magnitude(&mut self, least: i64, most: i64) -> i64 {
        let (low, high) = (least.ilog2(), most.ilog2());
        let top = 1i64 << self.between(low.into(), high.into());
        (top + self.below(top as u64) as i64).clamp(least, most)
    }

    /// With so many per cent.
    pub fn chance(&mut self, per_cent: u64) -> bool {
        self.below(100) < per_cent
    }

    /// One of them; there is at least one.
    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    /// `count` different ones of `0..of`, in random order.
    pub fn some(&mut self, of: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..of).collect();
        for at in 0..count.min(of) {
            let other = at + self.below((of - at) as u64) as usize;
            all.swap(at, other);
        }
        all.truncate(count.min(of));
        all
    }
}
