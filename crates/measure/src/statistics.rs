//! Six figures that describe a list of times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures in whole nanoseconds that describe a list of at least one value. Of signed errors they
/// are of sizes, as the published tables have them (Austad et al. 2023, table 8; Pérez et al. 2024,
/// section 5): among values of both signs the largest is not the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// The smallest value.
    pub min: i64,
    /// The mean, rounded to the nearest nanosecond, halves away from zero.
    pub avg: i64,
    /// The median: the smallest value that at least 50 % of the values do not exceed.
    pub p50: i64,
    /// The smallest value that at least 99 % of the values do not exceed.
    pub p99: i64,
    /// The largest value.
    pub max: i64,
    /// The standard deviation of the values about their mean, rounded down; of signed errors with
    /// their signs.
    pub stddev: i64,
    /// Of signed errors only: where they are with their signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// Where errors are with their signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The smallest: the latest of wake-up errors, where negative is after the target.
    pub min: i64,
    /// The mean, rounded to the nearest nanosecond, halves away from zero.
    pub avg: i64,
    /// The largest.
    pub max: i64,
}

impl Statistics {
    /// The statistics of a list, or `None` of an empty one. Any values are allowed; the standard
    /// deviation of values that lie more than about 2⁶² ns apart saturates.
    pub fn of(mut values: Vec<i64>) -> Option<Self> {
        values.sort_unstable();
        Self::of_sorted(&values)
    }

    /// The statistics of signed errors: of their sizes, and beside them of what has signs.
    pub fn of_errors(mut values: Vec<i64>) -> Option<Self> {
        values.sort_unstable();
        let with_signs = Self::of_sorted(&values)?;
        values.iter_mut().for_each(|value| *value = value.saturating_abs());
        let sizes = Self::of(values)?;
        let Self { min, avg, max, stddev, .. } = with_signs;
        Some(Self { stddev, signed: Some(Signed { min, avg, max }), ..sizes })
    }

    /// The same of a list that is in ascending order already.
    pub(crate) fn of_sorted(values: &[i64]) -> Option<Self> {
        let (min, max) = (*values.first()?, *values.last()?);
        let count = values.len();
        let total: i128 = values.iter().map(|v| i128::from(*v)).sum();
        let avg = rounded_quotient(total, count as i128);
        let squares = values.iter().fold(0u128, |sum, value| {
            let from_avg = value.abs_diff(avg);
            sum.saturating_add(u128::from(from_avg) * u128::from(from_avg))
        });
        let stddev = (squares / count as u128).isqrt();
        Some(Self {
            min,
            avg,
            p50: values[nearest_rank(count, 50, 100)],
            p99: values[nearest_rank(count, 99, 100)],
            max,
            stddev: i64::try_from(stddev).unwrap_or(i64::MAX),
            signed: None,
        })
    }

    /// Of signed errors: the one furthest from zero, with its sign. The published tables call it
    /// the maximum. Of two equally far, the negative one: late is worse than early.
    pub fn largest_deviation(&self) -> i64 {
        let Some(Signed { min, max, .. }) = self.signed else { return self.max };
        if min.unsigned_abs() >= max.unsigned_abs() { min } else { max }
    }

    /// The mean with its sign, as in these tables.
    pub fn signed_avg(&self) -> i64 {
        self.signed.map_or(self.avg, |signed| signed.avg)
    }
}

/// The index in a sorted list of `count` values of the smallest that at least `part` of `whole` do
/// not exceed (nearest rank).
pub(crate) fn nearest_rank(count: usize, part: usize, whole: usize) -> usize {
    (count * part).div_ceil(whole).max(1) - 1
}

/// The quotient that is nearest, halves away from zero. `count` is positive, and the quotient is
/// a mean of `i64`s and therefore one itself.
fn rounded_quotient(total: i128, count: i128) -> i64 {
    let nearest = (2 * total.abs() + count) / (2 * count) * total.signum();
    i64::try_from(nearest).expect("a mean lies between the values")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_figures_of_a_small_list_equal_the_sums_done_by_hand() {
        let figures = Statistics::of(vec![20, 1, 9, 2]).unwrap();
        // Sum 32, mean 32/4 = 8. Deviations 12, −7, 1, −6: 144 + 49 + 1 + 36 = 230; 230/4 = 57
        // and √57 = 7, both rounded down. Ranks ⌈4 · 0.50⌉ = 2 and ⌈4 · 0.99⌉ = 4 of 1, 2, 9, 20.
        let expected =
            Statistics { min: 1, avg: 8, p50: 2, p99: 20, max: 20, stddev: 7, signed: None };
        assert_eq!(figures, expected);
    }

    #[test]
    fn the_mean_rounds_halves_away_from_zero() {
        assert_eq!(Statistics::of(vec![1, 2]).unwrap().avg, 2);
        assert_eq!(Statistics::of(vec![-1, -2]).unwrap().avg, -2);
        assert_eq!(Statistics::of(vec![0, 0, 1]).unwrap().avg, 0);
    }

    #[test]
    fn the_largest_deviation_keeps_its_sign() {
        let of =
            |values: &[i64]| Statistics::of_errors(values.to_vec()).unwrap().largest_deviation();
        assert_eq!(of(&[-17_400, -2_300, 100]), -17_400);
        assert_eq!(of(&[-3, 5]), 5);
        assert_eq!(of(&[-5, 5]), -5);
    }

    #[test]
    fn of_errors_the_worst_is_furthest_from_zero_on_whichever_side() {
        // Late by 100 once in a hundred times, early by 1 else: by values p99 is 1 and the maximum
        // 1, and the late one is the minimum.
        let mut errors = vec![1; 98];
        errors.extend([-100, -90]);
        let figures = Statistics::of_errors(errors.clone()).unwrap();
        assert_eq!((figures.min, figures.p50, figures.p99, figures.max), (1, 1, 90, 100));
        // Sums 98 + 190 = 288 and 98 − 190 = −92, of 100 each.
        assert_eq!(figures.avg, 3);
        assert_eq!(figures.signed, Some(Signed { min: -100, avg: -1, max: 1 }));
        assert_eq!((figures.signed_avg(), figures.largest_deviation()), (-1, -100));
        assert_eq!(figures.stddev, Statistics::of(errors).unwrap().stddev, "about the mean");
        assert_eq!(Statistics::of_errors(vec![i64::MIN]).unwrap().max, i64::MAX);
    }

    #[test]
    fn nothing_has_no_statistics() {
        assert_eq!(Statistics::of(Vec::new()), None);
        assert_eq!(Statistics::of_errors(Vec::new()), None);
    }

    /// Counts instead of sorting, and finds the square root by search.
    fn naive(values: &[i64]) -> Statistics {
        let percentile = |percent: usize| {
            let enough = |candidate: &&i64| {
                values.iter().filter(|v| *v <= *candidate).count() * 100 >= percent * values.len()
            };
            *values.iter().filter(enough).min().unwrap()
        };
        let sum: i128 = values.iter().map(|v| i128::from(*v)).sum();
        let count = values.len() as i128;
        let mut avg = sum.div_euclid(count);
        let rest = 2 * sum.rem_euclid(count);
        if rest > count || (rest == count && sum > 0) {
            avg += 1;
        }
        let squares: i128 = values.iter().map(|v| (i128::from(*v) - avg).pow(2)).sum();
        let (mut low, mut high) = (0i128, 1 << 42);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let fits = middle * middle <= squares / count;
            (low, high) = if fits { (middle, high) } else { (low, middle) };
        }
        Statistics {
            min: *values.iter().min().unwrap(),
            avg: avg as i64,
            p50: percentile(50),
            p99: percentile(99),
            max: *values.iter().max().unwrap(),
            stddev: low as i64,
            signed: None,
        }
    }

    proptest! {
        #[test]
        fn statistics_of_any_list_agree_with_a_naive_computation(
            values in proptest::collection::vec(-(1i64 << 40)..1 << 40, 1..150),
        ) {
            prop_assert_eq!(Statistics::of(values.clone()).unwrap(), naive(&values));
        }

        #[test]
        fn no_list_of_extreme_values_overflows(
            values in proptest::collection::vec(
                prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX)], 1..50),
        ) {
            let figures = Statistics::of(values).unwrap();
            prop_assert!(figures.min <= figures.p50 && figures.p50 <= figures.p99);
            prop_assert!(figures.min <= figures.avg && figures.avg <= figures.max);
            prop_assert!(figures.stddev >= 0);
        }
    }
}
