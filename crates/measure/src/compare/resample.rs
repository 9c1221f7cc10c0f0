//! Block bootstrap of one run's figures: blocks of successive values are drawn with replacement,
//! and the figure is computed of each such resample as a whole (Künsch 1989; percentiles are never
//! averaged).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// How many resamples are made.
pub(super) const RESAMPLES: usize = 2_000;
/// The blocks that a run is cut into, at most.
pub(super) const BLOCKS_MAX: usize = 32;
/// The blocks below which nothing is judged.
pub(super) const BLOCKS_MIN: usize = 8;
/// The most of the largest block maxima that are looked at.
const LARGEST_MAX: usize = 64;
/// The values in a block, at least, where there are more blocks than the fewest.
const BLOCK_VALUES_MIN: usize = 4;
/// The ranks at which a resample's quantile is looked for; between them it is rounded up.
const CUTS_MAX: usize = 512;
/// How far around the quantile it is looked for, in standard errors of its rank.
const REACH: f64 = 8.0;

/// A figure of one run and what it is in resamples of it.
pub(super) struct Resampled {
    /// Of the run itself.
    pub(super) value: i64,
    /// Of each resample.
    pub(super) values: Vec<i64>,
    /// How many blocks were drawn from.
    pub(super) blocks: usize,
}

/// One run's values of a series, sorted, each with its place in time.
pub(super) struct Ordered {
    /// The value and when in the series it came, in the order of the values.
    sorted: Vec<(i64, u32)>,
}

impl Ordered {
    /// The values of a series, which are fewer than 2³².
    pub(super) fn new(values: &[i64]) -> Self {
        let mut sorted: Vec<(i64, u32)> = values.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The smallest value that at least `per_10000` of 10,000 values do not exceed.
    pub(super) fn quantile(&self, per_10000: usize) -> i64 {
        self.sorted[rank(self.len(), per_10000)].0
    }

    /// The largest value.
    pub(super) fn max(&self) -> i64 {
        self.sorted.last().map_or(0, |(value, _)| *value)
    }

    /// A quantile in resamples of the run. `stream` chooses the random numbers.
    pub(super) fn resample(&self, per_10000: usize, stream: u64) -> Resampled {
        let (count, at) = (self.len(), rank(self.len(), per_10000));
        let value = self.sorted[at].0;
        // What resembles its neighbours here is whether values are above the quantile.
        let above: Vec<u32> = {
            let mut above = vec![0; count];
            for (other, place) in &self.sorted {
                above[*place as usize] = u32::from(*other > value);
            }
            above
        };
        let blocks = Blocks::such_that_neighbours_differ(&above);
        let cuts = self.cuts(at, &blocks, &above);
        let below = self.counts(&cuts, &blocks);
        let mut draw = Draw::new(stream, blocks.count);
        let once = |_| {
            let weights = draw.weights();
            let dot = |counts: &[u32]| -> u64 {
                counts.iter().zip(weights).map(|(c, w)| u64::from(*c) * u64::from(*w)).sum()
            };
            let wanted = rank(dot(&blocks.sizes) as usize, per_10000) as u64 + 1;
            let found = below.partition_point(|counts| dot(counts) < wanted);
            self.sorted[cuts[found.min(cuts.len() - 1)]].0
        };
        Resampled { value, values: (0..RESAMPLES).map(once).collect(), blocks: blocks.count }
    }

    /// The ranks around `at` that resamples' quantiles are at, for all that matters.
    fn cuts(&self, at: usize, blocks: &Blocks, above: &[u32]) -> Vec<usize> {
        let reach = (REACH * blocks.error_of_total(above)).ceil() as usize + BLOCKS_MIN;
        let last = self.len() - 1;
        let (low, high) = (at.saturating_sub(reach), at.saturating_add(reach).min(last));
        let step = ((high - low + 1).div_ceil(CUTS_MAX)).max(1);
        let mut cuts: Vec<usize> = (low..high).step_by(step).collect();
        cuts.push(high);
        cuts
    }

    /// For each cut, how many values up to it each block has.
    fn counts(&self, cuts: &[usize], blocks: &Blocks) -> Vec<Vec<u32>> {
        let mut counts = vec![0u32; blocks.count];
        let mut next = 0;
        let mut all = Vec::with_capacity(cuts.len());
        for cut in cuts {
            for (_, place) in &self.sorted[next..=*cut] {
                counts[blocks.of(*place as usize)] += 1;
            }
            next = cut + 1;
            all.push(counts.clone());
        }
        all
    }
}

/// How many of a million the ones among `flags` are.
pub(super) fn share(flags: &[i64]) -> i64 {
    part_of(flags.iter().filter(|flag| **flag != 0).count() as u64, flags.len() as u64)
}

/// A part in millionths.
fn part_of(part: u64, whole: u64) -> i64 {
    i64::try_from(u128::from(part) * 1_000_000 / u128::from(whole.max(1))).unwrap_or(i64::MAX)
}

/// The same in resamples of the run.
pub(super) fn resample_share(flags: &[i64], stream: u64) -> Resampled {
    let ones: Vec<u32> = flags.iter().map(|flag| u32::from(*flag != 0)).collect();
    let blocks = Blocks::such_that_neighbours_differ(&ones);
    let sums = blocks.sums(&ones);
    let mut draw = Draw::new(stream, blocks.count);
    let once = |_| {
        let weights = draw.weights();
        let dot = |counts: &[u32]| -> u64 {
            counts.iter().zip(weights).map(|(c, w)| u64::from(*c) * u64::from(*w)).sum()
        };
        part_of(dot(&sums), dot(&blocks.sizes))
    };
    Resampled {
        value: share(flags),
        values: (0..RESAMPLES).map(once).collect(),
        blocks: blocks.count,
    }
}

/// The index in a sorted list of `count` values of a quantile (nearest rank).
fn rank(count: usize, per_10000: usize) -> usize {
    let rank = (count as u128 * per_10000 as u128).div_ceil(10_000) as usize;
    rank.clamp(1, count.max(1)) - 1
}

/// A run cut into blocks of successive values, whose lengths differ by one at most.
struct Blocks {
    count: usize,
    values: usize,
    sizes: Vec<u32>,
}

impl Blocks {
    fn new(values: usize, count: usize) -> Self {
        let mut blocks = Self { count, values, sizes: vec![0; count] };
        for block in 0..count {
            let start = |block: usize| (block * values).div_ceil(count);
            blocks.sizes[block] = (start(block + 1) - start(block)) as u32;
        }
        blocks
    }

    /// As many blocks as there may be such that what a block has of `ones` says little of the next
    /// one: where neighbours resemble each other, blocks are twice as long.
    fn such_that_neighbours_differ(ones: &[u32]) -> Self {
        let most = (ones.len() / BLOCK_VALUES_MIN).clamp(BLOCKS_MIN, BLOCKS_MAX);
        let mut blocks = Self::new(ones.len(), most);
        while blocks.count / 2 >= BLOCKS_MIN && blocks.neighbours_resemble(ones) {
            blocks = Self::new(ones.len(), blocks.count / 2);
        }
        blocks
    }

    /// The block of the value at a place.
    fn of(&self, place: usize) -> usize {
        place * self.count / self.values
    }

    fn sums(&self, ones: &[u32]) -> Vec<u32> {
        let mut sums = vec![0; self.count];
        for (place, one) in ones.iter().enumerate() {
            sums[self.of(place)] += one;
        }
        sums
    }

    /// What blocks' shares of `ones` deviate from the run's.
    fn deviations(&self, ones: &[u32]) -> Vec<f64> {
        let sums = self.sums(ones);
        let mean = sums.iter().map(|s| f64::from(*s)).sum::<f64>() / ones.len() as f64;
        let sums = sums.iter().zip(&self.sizes);
        sums.map(|(sum, size)| f64::from(*sum) - mean * f64::from(*size)).collect()
    }

    /// Whether the correlation of neighbours is beyond what chance makes of independent blocks
    /// in one of twenty runs.
    fn neighbours_resemble(&self, ones: &[u32]) -> bool {
        let deviations = self.deviations(ones);
        let squares: f64 = deviations.iter().map(|d| d * d).sum();
        let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
        products > squares * 1.65 / (self.count as f64).sqrt()
    }

    /// The standard error of the number of ones.
    fn error_of_total(&self, ones: &[u32]) -> f64 {
        self.deviations(ones).iter().map(|d| d * d).sum::<f64>().sqrt()
    }
}

/// Draws blocks with replacement: how often each was drawn.
struct Draw {
    random: Xoshiro256PlusPlus,
    weights: Vec<u32>,
}

impl Draw {
    fn new(stream: u64, blocks: usize) -> Self {
        Self { random: Xoshiro256PlusPlus::seed_from_u64(stream), weights: vec![0; blocks] }
    }

    fn weights(&mut self) -> &[u32] {
        self.weights.fill(0);
        let count = self.weights.len();
        for _ in 0..count {
            let drawn = (u128::from(self.random.next_u64()) * count as u128) >> 64;
            self.weights[drawn as usize] += 1;
        }
        &self.weights
    }
}

/// How many of the largest block maxima of two runs are those of the one that may be worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Largest {
    /// How many of the largest are looked at.
    pub(super) of: usize,
    /// How many of these are the tested run's.
    pub(super) tested: usize,
    /// How many blocks the other run has, and the tested one.
    blocks: [usize; 2],
}

impl Largest {
    /// Cuts both runs into blocks of one length and looks at the largest quarter of the blocks'
    /// maxima. Those of a run are first increased by so many thousandths of their size. Of equal
    /// ones, those of the run that is not tested count as larger.
    pub(super) fn new(other: (&[i64], i128), tested: (&[i64], i128)) -> Self {
        let shortest = other.0.len().min(tested.0.len());
        let length = shortest.div_ceil(BLOCKS_MAX).max(1);
        let maxima = |(run, thousandths): (&[i64], i128), is_tested: bool| {
            let blocks = run.chunks_exact(length).filter_map(|block| block.iter().max().copied());
            let scaled = blocks.map(i128::from).map(|max| max * 1000 + max.abs() * thousandths);
            scaled.map(|max| (max, !is_tested)).collect::<Vec<_>>()
        };
        let maxima = [maxima(other, false), maxima(tested, true)];
        let blocks = [maxima[0].len(), maxima[1].len()];
        let mut all = maxima.concat();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let of = (all.len() / 4).min(LARGEST_MAX);
        let tested = all[..of].iter().filter(|(_, other)| !other).count();
        Self { of, tested, blocks }
    }

    /// How probable it is that so many or more of the largest are the tested run's, if blocks are
    /// exchangeable (the hypergeometric distribution; Fisher's exact test).
    pub(super) fn probability(&self) -> f64 {
        let [other, tested] = self.blocks;
        let log_all = log_choose(other + tested, self.of);
        let ways = |k: usize| log_choose(tested, k) + log_choose(other, self.of - k) - log_all;
        let most = self.of.min(tested);
        let fitting = (self.tested..=most).filter(|k| self.of - k <= other);
        fitting.map(|k| ways(k).exp()).sum::<f64>().min(1.0)
    }
}

/// The natural logarithm of a binomial coefficient.
fn log_choose(n: usize, k: usize) -> f64 {
    (0..k).map(|i| ((n - i) as f64 / (i + 1) as f64).ln()).sum()
}

/// The probability that Student's t with so many degrees of freedom, one or more, is above `t`,
/// which is not negative (Abramowitz and Stegun, 26.7.3 and 26.7.4).
pub(super) fn t_tail(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let series = |start: f64, from: usize| {
        let mut term = start;
        let mut sum = 0.0;
        let mut at = from;
        while at <= freedom {
            sum += term;
            term *= cos * cos * (at - 1) as f64 / at as f64;
            at += 2;
        }
        sum
    };
    let within = if freedom.is_multiple_of(2) {
        sin * series(1.0, 2)
    } else {
        (angle + sin * series(cos, 3)) * std::f64::consts::FRAC_2_PI
    };
    (1.0 - within) / 2.0
}

/// What Student's t exceeds with this probability, less than one half.
pub(super) fn t_beyond(probability: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if t_tail(middle, freedom) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (freedom, probability, t) in [
            (1, 0.025, 12.706),
            (2, 0.025, 4.303),
            (7, 0.005, 3.499),
            (8, 0.0005, 5.041),
            (31, 0.025, 2.040),
            (30, 0.0005, 3.646),
            (15, 0.05, 1.753),
        ] {
            let found = t_beyond(probability, freedom);
            assert!((found - t).abs() < 6e-4, "{freedom} {probability}: {found}");
        }
    }

    #[test]
    fn the_share_of_the_largest_is_fishers_exact_test() {
        // All 4 of the largest of 8 and 8: 8·7·6·5 ways of 16·15·14·13.
        let low: Vec<i64> = (0..8).collect();
        let high: Vec<i64> = (100..108).collect();
        let largest = Largest::new((&low, 0), (&high, 0));
        assert_eq!((largest.of, largest.tested), (4, 4));
        assert!((largest.probability() - 1680.0 / 43_680.0).abs() < 1e-12);
        // None of them: certain.
        assert!((Largest::new((&high, 0), (&low, 0)).probability() - 1.0).abs() < 1e-12);
        // Equal ones say nothing against the tested run; by more than was added, they do.
        let [equal, below] = [[-70; 8], [-80; 8]];
        assert_eq!(Largest::new((&equal, 0), (&equal, 0)).tested, 0);
        assert_eq!(Largest::new((&below, 100), (&equal, 0)).tested, 4);
        assert_eq!(Largest::new((&below, 130), (&equal, 0)).tested, 0);
    }

    #[test]
    fn blocks_cover_each_value_once() {
        for values in [8, 33, 100, 1_001] {
            for count in [8, 16, 31] {
                let blocks = Blocks::new(values, count);
                let mut sizes = vec![0; count];
                (0..values).for_each(|place| sizes[blocks.of(place)] += 1);
                assert_eq!(sizes, blocks.sizes, "{values} in {count}");
            }
        }
    }

    #[test]
    fn values_that_stay_for_long_get_long_blocks() {
        let mixed: Vec<i64> = (0..6_400).map(|i| (i * 7_919) % 6_400).collect();
        let rising: Vec<i64> = (0..6_400).collect();
        assert_eq!(Ordered::new(&mixed).resample(5_000, 1).blocks, BLOCKS_MAX);
        assert_eq!(Ordered::new(&rising).resample(5_000, 1).blocks, BLOCKS_MIN);
    }

    #[test]
    fn a_resample_of_one_block_of_values_is_their_quantile() {
        // Where all blocks have the same values, so has each resample.
        let values: Vec<i64> = (0..3_200).map(|i| i % 100).collect();
        let resampled = Ordered::new(&values).resample(9_000, 3);
        assert_eq!(resampled.value, 89);
        assert!(resampled.values.iter().all(|value| *value == 89));
    }

    #[test]
    fn the_spread_of_resampled_medians_is_that_of_theory() {
        // Uniform values: the median of n has the standard error 1/(2 √n) of the range.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let values: Vec<i64> =
            (0..10_000).map(|_| (random.next_u64() >> 34) as i64 % 1_000_000).collect();
        let Resampled { value, values, .. } = Ordered::new(&values).resample(5_000, 9);
        let square = |v: &i64| ((v - value) as f64).powi(2);
        let spread = (values.iter().map(square).sum::<f64>() / values.len() as f64).sqrt();
        assert!((3_000.0..8_000.0).contains(&spread), "{spread} around 5,000");
    }
}
