//! Randomness from a seed.

/// Random numbers that are the same everywhere (SplitMix64, Steele, Lea and Flood 2014), from a
/// seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `0..count`; `count` is not 0.
    pub fn below(&mut self, count: u64) -> u64 {
        self.draw() % count
    }

    /// An index of `0..count`; `count` is not 0.
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// A number from one to another one, which is included.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from + 1).cast_unsigned()).cast_signed()
    }

    /// With so many per cent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Once in so many times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of them; there is at least one.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first outputs for the seed 1234567, as its authors' reference prints them.
        let mut random = Random(1_234_567);
        let first = [(); 3].map(|()| random.draw());
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
