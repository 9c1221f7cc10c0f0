//! Instants at which all sides were late together. On one machine that is no competition for a
//! processor: the whole machine stood still (a hypervisor, system management mode, a kernel that
//! stops all processors).

use super::document::Stalls;
use crate::statistics::Statistics;

/// What a side may be late by, however punctual it is otherwise.
const FLOOR_NS: i64 = 50_000;
/// Late is who is later than this many times the median, above the floor.
const TIMES_MEDIAN: i64 = 3;

/// Judges the instants of a series: `sides` are the lateness of its own thread and of those that
/// woke up at the same instants elsewhere, instant by instant. `None` if there is no other thread
/// to compare with, or no time.
///
/// # Panics
/// When the sides do not have the same length.
pub fn stalls(series: &str, sides: &[&[i64]]) -> Option<Stalls> {
    let own = *sides.first().filter(|_| sides.len() > 1)?;
    assert!(sides.iter().all(|side| side.len() == own.len()), "all sides have the same instants");
    let limit = |side: &&[i64]| {
        let median = Statistics::of(side.to_vec()).map(|of| of.p50.max(0));
        median.map(|median| median.saturating_mul(TIMES_MEDIAN).saturating_add(FLOOR_NS))
    };
    let limits: Vec<i64> = sides.iter().map(limit).collect::<Option<_>>()?;
    let mut found = Stalls {
        series: series.to_owned(),
        sides: sides.len() as u64,
        instants: own.len() as u64,
        late_above: limits[0],
        late: own.iter().filter(|late| **late > limits[0]).count() as u64,
        together: 0,
        together_max: 0,
    };
    for instant in 0..own.len() {
        let late = sides.iter().map(|side| side[instant]);
        if late.clone().zip(&limits).all(|(late, limit)| late > *limit) {
            found.together += 1;
            found.together_max = found.together_max.max(late.min().unwrap_or(0));
        }
    }
    Some(found)
}

/// The relative error: how much later the first side was than the most punctual of the others.
///
/// # Panics
/// When the sides do not have the same length.
pub fn relative(own: &[i64], others: &[&[i64]]) -> Vec<i64> {
    let least = |instant: usize| others.iter().map(|side| side[instant]).min().unwrap_or(0);
    own.iter().enumerate().map(|(instant, late)| late.saturating_sub(least(instant))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instants_at_which_every_side_is_late_are_stalls() {
        // Medians 10,000 and 20,000: late above 80,000 and 110,000.
        let own = [10_000, 90_000, 10_000, 500_000, 80_000, 10_000, 10_000];
        let other = [20_000, 20_000, 300_000, 400_000, 20_000, 20_000, 20_000];
        let found = stalls("latency.lc", &[&own, &other]).unwrap();
        assert_eq!((found.late_above, found.late), (80_000, 2));
        assert_eq!((found.together, found.together_max), (1, 400_000));
        assert_eq!((found.sides, found.instants), (2, 7));
        let beyond = [-10_000, 70_000, -290_000, 100_000, 60_000, -10_000, -10_000];
        assert_eq!(relative(&own, &[&other]), beyond);
        // A third side that was punctual: it was no stall of the machine.
        let third = [0; 7];
        assert_eq!(stalls("latency.lc", &[&own, &other, &third]).unwrap().together, 0);
        assert_eq!(relative(&own, &[&other, &third])[3], 500_000);
    }

    #[test]
    fn nobody_to_compare_with_is_no_judgement() {
        assert_eq!(stalls("latency.lc", &[&[1, 2]]), None);
        assert_eq!(stalls("latency.lc", &[&[], &[]]), None);
        assert_eq!(stalls("latency.lc", &[]), None);
    }
}
