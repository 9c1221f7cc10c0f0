//! Several runs against several, where a machine's time is in the figures. What differs from one
//! run to the next (where memory was placed, what else the machine did) is no matter of the values
//! within a run, so each run counts as one: it has one value of each figure. If both sides are
//! alike, it is chance which runs are whose, and every way to deal them to the sides is as probable
//! as the one that is. So it is counted how many of these show as large a difference in whichever
//! figure (Westfall and Young 1993, single step): exact for whatever distribution figures have, and
//! however they depend on each other.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// With so many runs of each side there are 70 ways to deal them, enough for 5 %.
pub(super) const RUNS_ENOUGH: usize = 4;
/// The most ways that are looked at: of more, so many are drawn.
const WAYS_MAX: usize = 20_000;
/// Differences of this part are rounding of floating point.
const ROUNDING: f64 = 1e-9;
/// The most values, among which the step is looked for, that are sorted.
const STEP_VALUES: usize = 100_000;

/// Which runs are the second side's.
type Deal = Vec<bool>;

/// All ways to deal `first + second` runs, or as many as are looked at; the way that it is comes
/// first.
pub(super) fn deals(first: usize, second: usize, seed: u64) -> Vec<Deal> {
    let runs = first + second;
    let actual: Deal = (0..runs).map(|run| run >= first).collect();
    let ways = (0..second).try_fold(1usize, |ways, k| {
        Some(ways.checked_mul(runs - k)? / (k + 1)).filter(|ways| *ways <= WAYS_MAX)
    });
    if ways.is_none() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let drawn = (1..WAYS_MAX).map(|_| {
            let mut deal = actual.clone();
            for at in (1..runs).rev() {
                let other = (u128::from(random.next_u64()) * (at as u128 + 1)) >> 64;
                deal.swap(at, other as usize);
            }
            deal
        });
        return std::iter::once(actual.clone()).chain(drawn).collect();
    }
    let mut all = vec![actual.clone()];
    let mut open = vec![(Deal::new(), second)];
    while let Some((deal, left)) = open.pop() {
        if deal.len() == runs {
            all.extend((deal != actual).then_some(deal));
            continue;
        }
        for is_second in [false, true] {
            let left = left.checked_sub(usize::from(is_second));
            let mut deal = deal.clone();
            deal.push(is_second);
            if let Some(left) = left.filter(|left| *left <= runs - deal.len()) {
                open.push((deal, left));
            }
        }
    }
    all
}

/// A figure of all runs, those of the first side first.
pub(super) struct OfRuns {
    pub(super) values: Vec<i64>,
    pub(super) first: usize,
}

impl OfRuns {
    /// The mean of each side, rounded to nearest.
    pub(super) fn means(&self) -> [i64; 2] {
        let (first, second) = self.values.split_at(self.first);
        [first, second].map(|side| {
            let count = side.len().max(1) as i128;
            let sum: i128 = side.iter().copied().map(i128::from).sum();
            i64::try_from((2 * sum + count).div_euclid(2 * count)).unwrap_or(i64::MAX)
        })
    }

    /// Of any run of the second side against any of the first: the smallest and the largest change.
    pub(super) fn reach(&self) -> [i64; 2] {
        let (first, second) = self.values.split_at(self.first);
        let ends = |side: &[i64]| {
            let least = side.iter().min().copied().unwrap_or_default();
            (least, side.iter().max().copied().unwrap_or_default())
        };
        let ((low, high), (from, to)) = (ends(first), ends(second));
        [from.saturating_sub(high), to.saturating_sub(low)]
    }

    /// By how much the second side's mean is larger in each way to deal, when the first side's runs
    /// are increased by `limit`: in units of how far all are apart, which does not depend on the
    /// way. `-1` asks by how much it is smaller, when the second's are increased.
    pub(super) fn differences(&self, limit: i64, sign: i8, deals: &[Deal]) -> Vec<f64> {
        let raised = |(run, value): (usize, &i64)| {
            let is_raised = (run < self.first) == (sign > 0);
            *value as f64 + if is_raised { limit as f64 } else { 0.0 }
        };
        let values: Vec<f64> = self.values.iter().enumerate().map(raised).collect();
        let sum: f64 = values.iter().sum();
        let (all, second) = (values.len() as f64, (values.len() - self.first) as f64);
        let mean = sum / all;
        let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>().sqrt();
        if spread == 0.0 {
            return vec![0.0; deals.len()];
        }
        let of_deal = |deal: &Deal| {
            let theirs = values.iter().zip(deal).filter(|(_, is)| **is).map(|(v, _)| v);
            let theirs: f64 = theirs.sum();
            let apart = theirs / second - (sum - theirs) / (all - second);
            f64::from(sign) * apart / spread
        };
        deals.iter().map(of_deal).collect()
    }
}

/// Of each way, the largest of these differences: in order.
pub(super) fn largest(differences: &[Vec<f64>], ways: usize) -> Vec<f64> {
    let mut largest = vec![f64::NEG_INFINITY; ways];
    for figure in differences {
        for (most, one) in largest.iter_mut().zip(figure) {
            *most = most.max(*one);
        }
    }
    largest.sort_unstable_by(f64::total_cmp);
    largest
}

/// In how many of 1,000 ways some figure shows as much as this one does; rounded up.
pub(super) fn chance_per_mille(shown: f64, largest: &[f64]) -> u32 {
    let below = largest.partition_point(|one| *one < shown - ROUNDING);
    ((largest.len() - below) * 1_000).div_ceil(largest.len()) as u32
}

/// The step in which values come, where the clock is coarser than a nanosecond: what is between
/// two neighbours among the values that came more than once, weighed by how often they came. Where
/// most values came once, the clock is finer than what is measured, and the step 1.
pub(super) fn step(values: &[i64]) -> i64 {
    let part = &values[..values.len().min(STEP_VALUES)];
    let mut sorted = part.to_vec();
    sorted.sort_unstable();
    let kinds: Vec<(i64, usize)> = (sorted.chunk_by(|a, b| a == b))
        .filter(|alike| alike.len() > 1)
        .map(|alike| (alike[0], alike.len()))
        .collect();
    let repeated: usize = kinds.iter().map(|(_, count)| count).sum();
    let gap = |pair: &[(i64, usize)]| (pair[1].0.saturating_sub(pair[0].0), pair[0].1 + pair[1].1);
    let mut gaps: Vec<_> = kinds.windows(2).map(gap).collect();
    gaps.sort_unstable();
    let all: usize = gaps.iter().map(|(_, weight)| weight).sum();
    let mut so_far = 0;
    let middle = gaps.iter().find(|(_, weight)| {
        so_far += weight;
        2 * so_far >= all
    });
    match middle {
        Some((gap, _)) if 2 * repeated > part.len() => (*gap).max(1),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_are_dealt_once_and_the_actual_one_first() {
        for (first, second, ways) in [(1, 1, 2), (4, 4, 70), (2, 3, 10), (8, 8, 12_870)] {
            let mut all = deals(first, second, 1);
            assert_eq!(all.len(), ways);
            let is_actual = |(run, is): (usize, &bool)| *is == (run >= first);
            assert!(all[0].iter().enumerate().all(is_actual));
            assert!(all.iter().all(|deal| deal.iter().filter(|is| **is).count() == second));
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), ways);
        }
        assert_eq!(deals(20, 20, 1).len(), WAYS_MAX);
    }

    #[test]
    fn the_chance_is_the_share_of_ways_that_show_as_much() {
        let of_runs = OfRuns { values: vec![10, 11, 12, 13, 20, 21, 22, 23], first: 4 };
        assert_eq!((of_runs.means(), of_runs.reach()), ([12, 22], [7, 13]));
        let deals = deals(4, 4, 1);
        let both = [1, -1].map(|sign| of_runs.differences(0, sign, &deals));
        let most = largest(&both, deals.len());
        // This way and the one that deals all the other way round.
        assert_eq!(chance_per_mille(both[0][0], &most), 29);
        assert_eq!(chance_per_mille(both[1][0], &most), 1_000);
        // Beyond a limit of 3 the sides are still apart; beyond 8 they overlap.
        for (limit, chance) in [(3, true), (8, false), (11, false)] {
            let both = [1, -1].map(|sign| of_runs.differences(limit, sign, &deals));
            let most = largest(&both, deals.len());
            assert_eq!(chance_per_mille(both[0][0], &most) <= 50, chance, "{limit}");
        }
    }

    #[test]
    fn the_step_is_the_clocks() {
        let coarse: Vec<i64> = (0..1_000).map(|i| 20 + 10 * (i * i % 7)).collect();
        assert_eq!(step(&coarse), 10);
        let fine: Vec<i64> = (0..1_000).map(|i| 28 + i * i % 7).collect();
        assert_eq!(step(&fine), 1);
        let spread: Vec<i64> = (0..1_000).map(|i| i * 7_919 % 1_000_003).collect();
        assert_eq!(step(&spread), 1, "each came once");
        assert_eq!((step(&[]), step(&[5, 5, 5])), (1, 1));
    }
}
