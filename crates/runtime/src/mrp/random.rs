//! Random numbers of timers, from a seed that the caller gives.

/// SplitMix64 (Steele, Lea and Flood 2014): a seed keeps its numbers for ever.
#[derive(Clone, Debug)]
pub(crate) struct TimerRandom(u64);

impl TimerRandom {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly in `0..count`, but for less than `count` in 2⁶⁴.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(count)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first outputs for the seed 1234567, as its authors' reference prints them.
        let mut random = TimerRandom::new(1_234_567);
        let first = [(); 3].map(|()| random.draw());
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
