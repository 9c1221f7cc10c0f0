//! Chance, from a seed.

use onbeat_model::time::Span;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

#[derive(Debug)]
pub(crate) struct Dice {
    random: Xoshiro256PlusPlus,
    /// In how many cases of a hundred something is not known.
    pub(crate) unknown: i64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Xoshiro256PlusPlus::seed_from_u64(seed), unknown: 0 }
    }
    /// From `least` to `most`, both possible.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        least + (self.random.next_u64() % (most - least + 1) as u64) as i64
    }
    pub(crate) fn span(&mut self, least: Span, most: Span) -> Span {
        Span::from_ns(self.between(least.as_ns(), most.as_ns()))
    }
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.random.next_u64() % count as u64) as usize
    }
    pub(crate) fn chance(&mut self, per_cent: i64) -> bool {
        self.between(0, 99) < per_cent
    }
    pub(crate) fn is_unknown(&mut self) -> bool {
        let unknown = self.unknown;
        self.chance(unknown)
    }
    pub(crate) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}
