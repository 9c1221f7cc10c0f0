//! What the charts draw, reduced to what a screen can show.

use onbeat_measure::Statistics;
use onbeat_measure::join::{JoinedListener, Message};
use onbeat_model::record::RunLog;
use onbeat_model::system::NoiseId;
use onbeat_model::time::{NetTime, Span};
use serde::Serialize;

/// Up to as many messages are drawn one by one.
const POINTS_MAX: usize = 20_000;
/// Beyond that, of each of so many equal parts of the time the lowest and the highest.
const PARTS: i64 = 5_000;
/// The most samples of load that are drawn; more are added up in groups.
const LOAD_MAX: usize = 3_000;
/// The most bars of a histogram.
const BARS_MAX: i128 = 60;

/// End-to-end latency over time at one listener.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Latency {
    /// Capture times of the messages that are drawn, in order.
    pub(super) at_us: Vec<i64>,
    /// Their latencies.
    pub(super) latency_ns: Vec<i64>,
    /// Where marks of lost messages are drawn, in order.
    pub(super) lost_at_us: Vec<i64>,
    /// How many lost messages each mark stands for.
    pub(super) lost_count: Vec<u64>,
    /// The part of the time of which only the lowest and highest are drawn; none if all are.
    pub(super) reduced_to_us: Option<i64>,
}

impl Latency {
    pub(super) fn of(listener: &JoinedListener, duration: Span) -> Self {
        let at = |m: &Message| m.capture().map_or(0, |capture| capture.as_ns());
        let points: Vec<_> =
            (listener.messages.iter()).filter_map(|m| Some((at(m), m.latency_ns()?))).collect();
        let lost: Vec<_> = listener.messages.iter().filter(|m| m.is_lost()).map(at).collect();
        let part_ns = (duration.as_ns() / PARTS).max(1);
        let drawn = if points.len() > POINTS_MAX { extremes(&points, part_ns) } else { points };
        let reduced = drawn.len() < listener.messages.iter().filter(|m| m.is_receipt()).count();
        let marks = if lost.len() > POINTS_MAX {
            grouped(&lost, part_ns)
        } else {
            lost.iter().map(|at| (*at, 1)).collect()
        };
        Self {
            at_us: drawn.iter().map(|(at, _)| at / 1_000).collect(),
            latency_ns: drawn.iter().map(|(_, latency)| *latency).collect(),
            lost_at_us: marks.iter().map(|(at, _)| at / 1_000).collect(),
            lost_count: marks.iter().map(|(_, count)| *count).collect(),
            reduced_to_us: reduced.then_some(part_ns / 1_000),
        }
    }
}

/// Of each part of the time, the first lowest and the first highest value. `points` are in order
/// of time, and so is what is kept.
pub(super) fn extremes(points: &[(i64, i64)], part_ns: i64) -> Vec<(i64, i64)> {
    let same_part = |a: &(i64, i64), b: &(i64, i64)| a.0 / part_ns == b.0 / part_ns;
    let mut kept = Vec::new();
    for part in points.chunk_by(same_part) {
        let (mut low, mut high) = (0, 0);
        for (at, (_, value)) in part.iter().enumerate() {
            if *value < part[low].1 {
                low = at;
            }
            if *value > part[high].1 {
                high = at;
            }
        }
        kept.push(part[low.min(high)]);
        if low != high {
            kept.push(part[low.max(high)]);
        }
    }
    kept
}

/// One mark per part of the time in which there is any, with how many there are.
fn grouped(lost: &[i64], part_ns: i64) -> Vec<(i64, u64)> {
    let parts = lost.chunk_by(|a, b| a / part_ns == b / part_ns);
    parts.map(|part| (part[0], part.len() as u64)).collect()
}

/// Interfering load over time, of some noise sources together.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Load {
    /// Where each sample starts; a last one ends the one before it.
    pub(super) at_us: Vec<i64>,
    /// What reached its destination, in kb/s on the wire.
    pub(super) delivered_kbps: Vec<u64>,
    /// What was sent, in kb/s on the wire.
    pub(super) offered_kbps: Vec<u64>,
}

impl Load {
    /// Of those sources that `counts` says.
    pub(super) fn of(log: &RunLog, counts: impl Fn(NoiseId) -> bool) -> Self {
        let mut sums: Vec<(i64, u64, u64)> = Vec::new();
        // What came after the talkers' time, while the network ran empty, is not shown.
        let end = NetTime::ZERO + log.duration;
        for sample in log.load.iter().filter(|sample| sample.at < end && counts(sample.noise)) {
            let at = sample.at.as_ns();
            if sums.last().is_none_or(|last| last.0 != at) {
                sums.push((at, 0, 0));
            }
            if let Some(last) = sums.last_mut() {
                last.1 = last.1.saturating_add(sample.delivered_bits);
                last.2 = last.2.saturating_add(sample.offered_bits);
            }
        }
        let Some(first) = sums.first().map(|s| s.0) else {
            return Self::default();
        };
        let spacing = sums.get(1).map_or(log.duration.as_ns(), |s| s.0.saturating_sub(first));
        let spacing = spacing.max(1);
        let group = sums.len().div_ceil(LOAD_MAX);
        let mut load = Self::default();
        for samples in sums.chunks(group) {
            let ns = spacing.saturating_mul(samples.len() as i64);
            let rate = |of: fn(&(i64, u64, u64)) -> u64| {
                let bits: u128 = samples.iter().map(|s| u128::from(of(s))).sum();
                u64::try_from(bits * 1_000_000 / ns as u128).unwrap_or(u64::MAX)
            };
            load.push(samples[0].0, rate(|s| s.1), rate(|s| s.2));
        }
        // A step lasts until the next sample: the last one needs an end.
        let last = sums.last().map_or(0, |s| s.0).saturating_add(spacing);
        let last = last.min(end.as_ns());
        let (delivered, offered) = (load.delivered_kbps.last(), load.offered_kbps.last());
        let (delivered, offered) = (delivered.copied(), offered.copied());
        load.push(last, delivered.unwrap_or(0), offered.unwrap_or(0));
        load
    }

    fn push(&mut self, at_ns: i64, delivered_kbps: u64, offered_kbps: u64) {
        self.at_us.push(at_ns / 1_000);
        self.delivered_kbps.push(delivered_kbps);
        self.offered_kbps.push(offered_kbps);
    }
}

/// How often an error was in which interval.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Histogram {
    /// Where the first bar starts.
    pub(super) start_ns: i64,
    /// The width of each bar.
    pub(super) width_ns: i64,
    /// How many values each bar holds.
    pub(super) counts: Vec<u64>,
}

/// A histogram of all values and one of those within three standard deviations of the mean.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Density {
    pub(super) all: Histogram,
    pub(super) near: Histogram,
}

impl Density {
    pub(super) fn of(values: &[i64], figures: &Statistics) -> Self {
        let reach = figures.stddev.saturating_mul(3).max(1);
        let near: Vec<_> = (values.iter().copied())
            .filter(|v| v.abs_diff(figures.signed_avg()) <= reach.unsigned_abs())
            .collect();
        // By Chebyshev at least eight in nine are, so the second histogram is never empty.
        Self { all: Histogram::of(values), near: Histogram::of(&near) }
    }
}

impl Histogram {
    /// The widths are 1, 2 or 5 times a power of ten, and bars start at multiples of the width.
    fn of(values: &[i64]) -> Self {
        let (Some(min), Some(max)) = (values.iter().min(), values.iter().max()) else {
            return Self { start_ns: 0, width_ns: 1, counts: Vec::new() };
        };
        let (min, max) = (i128::from(*min), i128::from(*max));
        let bars = |width: i128| max.div_euclid(width) - min.div_euclid(width) + 1;
        let widths = (0..20).flat_map(|power| [1, 2, 5].map(|step| step * 10i128.pow(power)));
        let width = widths.into_iter().find(|w| bars(*w) <= BARS_MAX).unwrap_or(i128::MAX);
        let first = min.div_euclid(width);
        let mut counts = vec![0; bars(width) as usize];
        for value in values {
            counts[(i128::from(*value).div_euclid(width) - first) as usize] += 1;
        }
        let ns = |value: i128| i64::try_from(value).unwrap_or(i64::MIN);
        Self { start_ns: ns(first * width), width_ns: ns(width), counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::record::{Carrier, Ending, LoadSample};
    use onbeat_model::system::TimeMode;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reducing_keeps_the_lowest_and_highest_of_all_and_the_order_of_time(
            values in proptest::collection::vec(0i64..1_000_000, 1..2_000),
            part_ns in 1i64..50_000,
        ) {
            let points: Vec<_> = (0..).map(|i| i * 1_000).zip(values).collect();
            let kept = extremes(&points, part_ns);
            let range = |of: &[(i64, i64)]| {
                (of.iter().map(|p| p.1).min(), of.iter().map(|p| p.1).max())
            };
            prop_assert_eq!(range(&kept), range(&points));
            prop_assert!(kept.is_sorted_by_key(|p| p.0));
            prop_assert!(kept.iter().all(|p| points.contains(p)));
        }

        #[test]
        fn marks_of_lost_messages_stand_for_all_of_them(
            gaps in proptest::collection::vec(0i64..10_000, 1..500),
            part_ns in 1i64..50_000,
        ) {
            let lost: Vec<_> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let marks = grouped(&lost, part_ns);
            prop_assert_eq!(marks.iter().map(|m| m.1).sum::<u64>(), lost.len() as u64);
            prop_assert_eq!(marks[0].0, lost[0]);
        }

        #[test]
        fn a_histogram_holds_every_value_in_the_bar_it_falls_into(
            values in proptest::collection::vec(
                prop_oneof![-100i64..100, -1_000_000i64..1_000_000, any::<i64>()], 1..100),
        ) {
            let histogram = Histogram::of(&values);
            prop_assert_eq!(histogram.counts.iter().sum::<u64>(), values.len() as u64);
            prop_assert!(histogram.counts.len() as i128 <= BARS_MAX);
            let low = *values.iter().min().unwrap() as i128;
            let above = low - i128::from(histogram.start_ns);
            prop_assert!(above >= 0 || histogram.start_ns == i64::MIN);
            prop_assert!(above < i128::from(histogram.width_ns));
        }
    }

    #[test]
    fn the_load_is_the_sum_of_the_sources_in_bits_per_second() {
        // Two sources, samples of 1 ms: 400 kb and 100 kb make 500 kb in 1 ms, which is 500 Mb/s.
        let sample = |source, at_ms, offered_bits, delivered_bits| LoadSample {
            noise: NoiseId(source),
            at: NetTime::ZERO + Span::from_ms(at_ms),
            offered_bits,
            delivered_bits,
        };
        let log = RunLog {
            scenario: String::new(),
            seed: 0,
            network: Carrier::Emulated,
            time: TimeMode::Virtual,
            duration: Span::from_ms(2),
            protected: false,
            ends: Vec::new(),
            load: vec![
                sample(0, 0, 400_000, 300_000),
                sample(1, 0, 100_000, 100_000),
                sample(0, 1, 0, 50_000),
                sample(1, 1, 0, 0),
                // After the end of the run.
                sample(0, 2, 900_000, 900_000),
                sample(1, 2, 0, 0),
            ],
            ending: Ending::Complete,
            lag_max: None,
            clocks: Vec::new(),
            tcp: Vec::new(),
            reservations: None,
            stations: None,
        };
        let expected = Load {
            at_us: vec![0, 1_000, 2_000],
            delivered_kbps: vec![400_000, 50_000, 50_000],
            offered_kbps: vec![500_000, 0, 0],
        };
        assert_eq!(Load::of(&log, |_| true), expected);
        // Of one source only: the other one's frames went another way.
        let second = Load::of(&log, |noise| noise == NoiseId(1));
        assert_eq!(second.offered_kbps, [100_000, 0, 0]);
        assert_eq!(Load::of(&log, |_| false), Load::default());
    }
}
