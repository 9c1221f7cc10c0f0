//! Figures and a histogram of a list of times, which may have signs.

use crate::segments::{bin_of, start_of};
use crate::statistics::{Signed, Statistics, nearest_rank};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::segments::Bin;

/// Of each power of two, at most 2 to this many bins.
const BITS_MAX: u32 = 5;
/// The most bins from the smallest to the largest value, but for the least fine division.
const BINS_MAX: i64 = 160;

/// Figures of a list of at least one time, in nanoseconds. All but the standard deviation and the
/// histogram are of sizes: where values have signs, the largest need not be the worst, and
/// "negative values simply indicate that the second signal is raised first" (Pérez et al. 2024,
/// section 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// How many values.
    pub count: u64,
    /// The smallest value.
    pub min: i64,
    /// The mean, rounded to the nearest nanosecond, halves away from zero.
    pub avg: i64,
    /// The median: the smallest value that at least 50 % of the values do not exceed.
    pub p50: i64,
    /// The smallest value that at least 99 % of the values do not exceed.
    pub p99: i64,
    /// The smallest value that at least 99.99 % of the values do not exceed; of fewer than 10,000
    /// values the largest.
    pub p9999: i64,
    /// The largest value.
    pub max: i64,
    /// The standard deviation of the values, with their signs, about their mean, rounded down.
    pub stddev: i64,
    /// Where values are with their signs; null if none is negative.
    pub signed: Option<Signed>,
    /// How many values, with their signs, were in which range; ranges without values are left out.
    pub histogram: Vec<Bin>,
}

impl Figures {
    /// The figures of a list, or `None` of an empty one.
    pub fn of(values: &[i64]) -> Option<Self> {
        let mut values = values.to_vec();
        values.sort_unstable();
        let count = values.len();
        let histogram = histogram(&values);
        let of = Statistics::of_errors(values.clone())?;
        values.iter_mut().for_each(|value| *value = value.saturating_abs());
        values.sort_unstable();
        Some(Self {
            count: count as u64,
            min: of.min,
            avg: of.avg,
            p50: of.p50,
            p99: of.p99,
            p9999: values[nearest_rank(count, 9_999, 10_000)],
            max: of.max,
            stddev: of.stddev,
            signed: of.signed.filter(|signed| signed.min < 0),
            histogram,
        })
    }
}

/// Bins that grow with their values on both sides of zero, so that outliers do not squeeze all
/// others into one.
fn histogram(sorted: &[i64]) -> Vec<Bin> {
    let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let fits = |bits: &u32| signed_bin(*max, *bits) - signed_bin(*min, *bits) < BINS_MAX;
    let bits = (0..=BITS_MAX).rev().find(fits).unwrap_or(0);
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for value in sorted {
        *counts.entry(signed_bin(*value, bits)).or_default() += 1;
    }
    let bin = |(at, count)| Bin {
        from_ns: signed_start(at, bits),
        to_ns: signed_start(at + 1, bits),
        count,
    };
    counts.into_iter().map(bin).collect()
}

/// Which bin a value is in; those of negative values mirror the others.
fn signed_bin(value: i64, bits: u32) -> i64 {
    match value {
        0.. => bin_of(value, bits),
        _ => -bin_of(value.checked_neg().unwrap_or(i64::MAX), bits),
    }
}

/// The first value of a bin. A negative bin ends one after the value that its mirror begins with.
fn signed_start(bin: i64, bits: u32) -> i64 {
    match bin {
        1.. => start_of(bin, bits),
        0 => 0, // zero has a bin of its own
        _ => 1 - start_of(1 - bin, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_in_ten_thousand_is_beyond_the_highest_percentile() {
        let mut values: Vec<i64> = (1..=10_000).collect();
        let figures = Figures::of(&values).unwrap();
        // Rank ⌈10,000 · 0.9999⌉ = 9,999, rank ⌈10,000 · 0.99⌉ = 9,900, rank 5,000.
        assert_eq!((figures.p50, figures.p99, figures.p9999), (5_000, 9_900, 9_999));
        assert_eq!((figures.count, figures.max), (10_000, 10_000));
        values.pop();
        // Rank ⌈9,999 · 0.9999⌉ = ⌈9998.0001⌉ = 9,999: the largest.
        assert_eq!(Figures::of(&values).unwrap().p9999, 9_999);
        values.extend(10_000..=20_000);
        // Rank ⌈20,000 · 0.9999⌉ = 19,998.
        assert_eq!(Figures::of(&values).unwrap().p9999, 19_998);
        assert_eq!(Figures::of(&[]), None);
    }

    #[test]
    fn the_figures_of_offsets_are_of_their_sizes() {
        let figures = Figures::of(&[-60_000, -10, 20, 30, 40]).unwrap();
        assert_eq!((figures.min, figures.p50, figures.p99), (10, 30, 60_000));
        assert_eq!((figures.p9999, figures.max, figures.avg), (60_000, 60_000, 12_020));
        assert_eq!(figures.signed, Some(Signed { min: -60_000, avg: -11_984, max: 40 }));
        assert_eq!(figures.histogram.first().map(|bin| bin.from_ns < 0), Some(true));
        assert_eq!(Figures::of(&[1, 2]).unwrap().signed, None);
    }

    proptest! {
        #[test]
        fn every_value_is_in_exactly_one_bin(
            values in prop::collection::vec(
                prop_oneof![-50i64..50, -2_000_000i64..2_000_000, Just(i64::MAX), Just(i64::MIN)],
                1..80),
        ) {
            let bins = Figures::of(&values).unwrap().histogram;
            prop_assert!(bins.windows(2).all(|pair| pair[0].to_ns <= pair[1].from_ns), "{bins:?}");
            for bin in &bins {
                let last = bin.to_ns == i64::MAX;
                let first = bin.from_ns == i64::MIN + 2;
                let within = |v: &&i64| {
                    (**v >= bin.from_ns || first) && (**v < bin.to_ns || last)
                };
                prop_assert_eq!(
                    values.iter().filter(within).count() as u64, bin.count, "{:?}", bins);
            }
        }
    }
}
