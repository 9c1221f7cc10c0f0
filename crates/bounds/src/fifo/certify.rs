//! From multipliers in floating point to a bound that holds in integers.
//!
//! For multipliers *λ ≥ 0* of the rows with *Σ λ·a ≥ c* in every column, *c·y ≤ Σ λ·b* for
//! whatever *y ≥ 0* satisfies the rows: weak duality, whoever chose them. They are rounded to
//! multiples of a power of two; all columns are then checked and the sum is made in integers.

use super::FifoNetwork;

/// What a variable or a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Time,
    /// Nanobits.
    Amount,
}

/// A row in integers: at most `limit` and the bursts of some sub-flows.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    pub(crate) terms: Vec<(usize, i128)>,
    pub(crate) limit: i128,
    pub(crate) bursts: Vec<usize>,
    pub(crate) unit: Unit,
}

impl Exact {
    fn limit(&self, bursts: &[i128]) -> i128 {
        self.limit + self.bursts.iter().map(|piece| bursts[*piece]).sum::<i128>()
    }
}

/// What is to be as large as possible, and its unit.
pub(crate) struct Objective {
    pub(crate) terms: Vec<(usize, i128)>,
    pub(crate) unit: Unit,
}

impl Objective {
    /// In floating point, with `margin` more in every column: room for rounding the multipliers.
    pub(crate) fn floats(&self, variables: usize, margin: f64) -> Vec<f64> {
        let mut floats = vec![margin; variables];
        for (variable, a) in &self.terms {
            floats[*variable] += *a as f64;
        }
        floats
    }
}

/// A certified bound.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// In the objective's unit, rounded up.
    pub(crate) bound: i128,
    /// How it grows with the burst of each sub-flow, about: for finding a fixed point, not for
    /// showing that it is one.
    pub(crate) slopes: Vec<(usize, f64)>,
}

/// The units in which a program is solved: all numbers near one.
pub(crate) struct Scale {
    time: f64,
    rate: f64,
}

impl Scale {
    /// That of the servers of a tree, and of the greatest burst.
    pub(crate) fn new(network: &FifoNetwork, tree: &[usize], burst: i128) -> Self {
        let rates = tree.iter().map(|s| network.servers[*s].rate.as_bps());
        let rate = rates.max().expect("a server") as f64;
        Self { time: burst as f64 / rate, rate }
    }

    fn of(&self, unit: Unit) -> f64 {
        if unit == Unit::Time { self.time } else { self.time * self.rate }
    }

    pub(crate) fn limit(&self, row: &Exact, bursts: &[i128]) -> f64 {
        row.limit(bursts) as f64 / self.of(row.unit)
    }

    pub(crate) fn terms(&self, row: &Exact, units: &[Unit]) -> Vec<(usize, f64)> {
        let scaled =
            |(v, a): &(usize, i128)| (*v, *a as f64 * self.of(units[*v]) / self.of(row.unit));
        // A variable may come twice.
        let mut terms: Vec<(usize, f64)> = row.terms.iter().map(scaled).collect();
        terms.sort_by_key(|(variable, _)| *variable);
        terms.dedup_by(|next, before| {
            let same = next.0 == before.0;
            before.1 += if same { next.1 } else { 0.0 };
            same
        });
        terms
    }
}

/// Makes the bound from the multipliers, or says that they do not give one.
pub(crate) fn certify(
    rows: &[Exact],
    variables: usize,
    objective: &Objective,
    multipliers: &[(usize, f64)],
    scale: &Scale,
    bursts: &[i128],
) -> Option<Solution> {
    // Large enough for all the digits, small enough for the sums.
    let places = if objective.unit == Unit::Time { 80 } else { 50 };
    let one = 1_i128 << places;
    let mut columns = vec![0_i128; variables];
    for (variable, a) in &objective.terms {
        columns[*variable] -= a * one;
    }
    let mut total = 0_i128;
    let mut slopes = Vec::new();
    for (at, multiplier) in multipliers {
        let row = &rows[*at];
        let real = multiplier * scale.of(objective.unit) / scale.of(row.unit);
        let fixed = (real * one as f64).round() as i128;
        for (variable, a) in &row.terms {
            let column = &mut columns[*variable];
            *column = column.checked_add(a.checked_mul(fixed)?)?;
        }
        total = total.checked_add(row.limit(bursts).checked_mul(fixed)?)?;
        slopes.extend(row.bursts.iter().map(|piece| (*piece, real)));
    }
    let covered = columns.iter().all(|column| *column >= 0);
    covered.then(|| Solution { bound: super::curve::ceil(total, one), slopes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCALE: Scale = Scale { time: 1.0, rate: 1.0 };

    fn row(terms: &[(usize, i128)], limit: i128) -> Exact {
        Exact { terms: terms.to_vec(), limit, bursts: Vec::new(), unit: Unit::Time }
    }

    fn bound(rows: &[Exact], objective: &[(usize, i128)], multipliers: &[f64]) -> Option<i128> {
        let objective = Objective { terms: objective.to_vec(), unit: Unit::Time };
        let multipliers: Vec<(usize, f64)> = multipliers.iter().copied().enumerate().collect();
        certify(rows, 2, &objective, &multipliers, &SCALE, &[]).map(|s| s.bound)
    }

    #[test]
    fn multipliers_that_cover_every_column_make_a_bound_and_others_none() {
        // x + y ≤ 10, y ≤ 4: 2x + 3y ≤ 2·10 + 1·4.
        let rows = [row(&[(0, 1), (1, 1)], 10), row(&[(1, 1)], 4)];
        let objective = [(0, 2), (1, 3)];
        assert_eq!(bound(&rows, &objective, &[2.0, 1.0]), Some(24));
        assert_eq!(bound(&rows, &objective, &[2.0, 1.5]), Some(26));
        assert_eq!(bound(&rows, &objective, &[2.0, 1.01]), Some(25));
        assert_eq!(bound(&rows, &objective, &[2.0, 1.0 - 1e-9]), None);
        assert_eq!(bound(&rows, &objective, &[2.0 - 1e-9, 1.1]), None);
        assert_eq!(bound(&rows, &objective, &[2.0, f64::MAX]), None);
    }

    #[test]
    fn bursts_count_as_part_of_the_limit() {
        let mut limited = row(&[(0, 1)], 10);
        limited.bursts = vec![1];
        let objective = Objective { terms: vec![(0, 3)], unit: Unit::Time };
        let found = certify(&[limited], 1, &objective, &[(0, 3.0)], &SCALE, &[100, 7]).unwrap();
        assert_eq!(found.bound, 51);
        assert_eq!(found.slopes, [(1, 3.0)]);
    }

    proptest! {
        #[test]
        fn no_feasible_point_is_above_a_bound_whatever_the_multipliers(
            coefficients in prop::collection::vec((-3_i128..6, -3_i128..6), 3),
            point in (0_i128..50, 0_i128..50),
            objective in (-3_i128..6, -3_i128..6),
            multipliers in prop::collection::vec(0.0..4.0_f64, 3),
        ) {
            let rows: Vec<Exact> = coefficients
                .iter()
                .map(|(a, b)| row(&[(0, *a), (1, *b)], a * point.0 + b * point.1))
                .collect();
            let value = objective.0 * point.0 + objective.1 * point.1;
            if let Some(found) = bound(&rows, &[(0, objective.0), (1, objective.1)], &multipliers) {
                prop_assert!(value <= found, "{value} > {found}");
            }
        }
    }
}
