//! Comparisons of runs whose truth is known: equal ones must not be told apart, shifts must be
//! seen; heavy tails, values that resemble their neighbours and drift must not change that.

use onbeat_measure::compare::{Kind, Quantity, Series, Subject, Verdict, compare};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// How often each kind of run is repeated.
const REPETITIONS: u64 = 100;
/// 5 %, as the command has it.
const EFFECT: u32 = 50;

/// What a run's values are like.
#[derive(Clone, Copy, Debug)]
struct Nature {
    /// How much of a deviation the next value has.
    memory: f64,
    /// The standard deviation, as a share of the middle value.
    spread: f64,
    /// How many values in 1,000 are outliers (Pareto distributed, without a mean of squares).
    outliers: u64,
    /// By how much of the middle value a run rises or falls from its begin to its end, at most.
    drift: f64,
}

const PLAIN: Nature = Nature { memory: 0.0, spread: 0.05, outliers: 0, drift: 0.0 };

struct Source(Xoshiro256PlusPlus);

impl Source {
    /// Uniform between 0 and 1, neither of both.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Values about 60 µs.
    fn values(&mut self, nature: Nature, count: usize) -> Vec<i64> {
        let mut state = self.normal();
        let new = (1.0 - nature.memory * nature.memory).sqrt();
        let slope = nature.drift * (2.0 * self.uniform() - 1.0);
        let phase = self.uniform();
        let value = |at: usize| {
            state = nature.memory * state + new * self.normal();
            let time = at as f64 / count as f64;
            let wave = (std::f64::consts::TAU * (3.0 * time + phase)).sin() * nature.drift / 2.0;
            let mut value = 60_000.0 * ((nature.spread * state).exp() + slope * time + wave);
            if self.0.next_u64() % 1_000 < nature.outliers {
                value *= self.uniform().powf(-1.0 / 1.5);
            }
            value as i64
        };
        (0..count).map(value).collect()
    }

    /// So many series of so many values.
    fn subject(&mut self, nature: Nature, series: usize, values: usize) -> Subject {
        let one = |number| Series {
            run: String::new(),
            name: format!("series.{number}"),
            quantity: Quantity::Measured,
            values: self.values(nature, values),
        };
        Subject {
            kind: Kind::Measurement,
            system: String::new(),
            settings: Default::default(),
            series: (0..series).map(one).collect(),
        }
    }
}

/// The subject with the values of its first series increased by so many per cent.
fn shifted(mut subject: Subject, series: usize, percent: i64) -> Subject {
    for series in &mut subject.series[..series] {
        series.values.iter_mut().for_each(|value| *value += *value * percent / 100);
    }
    subject
}

fn verdict(first: &Subject, second: &Subject, effect: u32) -> Verdict {
    compare(first, second, effect).expect("they are of a kind").verdict
}

/// How often equal runs are told apart, and how often runs that are slower by 10 % in so many of
/// their series are not called worse.
fn errors(nature: Nature, series: usize, values: usize, slower: usize) -> (u64, u64) {
    let mut errors = (0, 0);
    for repetition in 0..REPETITIONS {
        let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(1_000 + repetition));
        let first = source.subject(nature, series, values);
        let second = source.subject(nature, series, values);
        errors.0 += u64::from(verdict(&first, &second, EFFECT) != Verdict::NotDistinguishable);
        let worse = verdict(&first, &shifted(second, slower, 10), EFFECT);
        errors.1 += u64::from(worse != Verdict::Worse);
    }
    errors
}

/// At least 95 of 100 are right, both ways.
#[track_caller]
fn right(nature: Nature, series: usize, values: usize, slower: usize) {
    let (different, unseen) = errors(nature, series, values, slower);
    println!("{nature:?}: of {REPETITIONS}, {different} told apart, {unseen} not seen");
    assert!(different <= 5, "{nature:?}: {different} of {REPETITIONS} equal runs were told apart");
    assert!(unseen <= 5, "{nature:?}: {unseen} of {REPETITIONS} slower runs were not called worse");
}

#[test]
fn equal_runs_are_not_told_apart_and_one_slow_series_of_twelve_is_found() {
    right(PLAIN, 12, 1_000, 1);
}

#[test]
fn a_run_of_500_messages_suffices() {
    right(Nature { spread: 0.1, ..PLAIN }, 3, 500, 3);
}

#[test]
fn heavy_tails_neither_hide_a_shift_nor_feign_one() {
    right(Nature { outliers: 30, ..PLAIN }, 4, 2_000, 4);
}

#[test]
fn values_that_resemble_their_neighbours_are_not_taken_for_more_than_they_are() {
    right(Nature { memory: 0.95, ..PLAIN }, 4, 3_000, 4);
}

#[test]
fn drift_within_a_run_is_not_taken_for_a_change() {
    right(Nature { drift: 0.02, outliers: 10, memory: 0.8, spread: 0.05 }, 4, 3_000, 4);
}

/// The effect forgives much; without it the error that is promised is all there is. It may be 5 %:
/// that more than 10 of 100 are wrong has a probability of 1.1 % then.
#[test]
fn without_any_effect_equal_runs_are_told_apart_as_rarely_as_promised() {
    for nature in [
        PLAIN,
        Nature { outliers: 30, ..PLAIN },
        Nature { memory: 0.8, ..PLAIN },
        Nature { memory: 0.95, ..PLAIN },
    ] {
        let different = |repetition: &u64| {
            let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(5_000 + repetition));
            let first = source.subject(nature, 3, 2_000);
            verdict(&first, &source.subject(nature, 3, 2_000), 0) != Verdict::NotDistinguishable
        };
        let different = (0..REPETITIONS).filter(different).count();
        println!("{nature:?}: of {REPETITIONS}, {different} told apart without an effect");
        assert!(different <= 10, "{nature:?}: {different} of {REPETITIONS}");
    }
}

#[test]
fn a_single_outlier_however_large_is_no_verdict() {
    let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(3));
    let first = source.subject(PLAIN, 2, 1_000);
    let mut second = source.subject(PLAIN, 2, 1_000);
    second.series[1].values[400] *= 1_000;
    let comparison = compare(&first, &second, EFFECT).expect("of a kind");
    assert_eq!(comparison.verdict, Verdict::NotDistinguishable);
    let max = comparison.series[1].figures.last().expect("the maximum");
    assert!(max.values_ns.expect("a time").change > 1_000_000);
}

#[test]
fn more_losses_and_a_longer_tail_are_seen_where_the_median_stays() {
    let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(4));
    let subject = |source: &mut Source, lost_per_mille: u64, outliers: u64| {
        let mut subject = source.subject(Nature { outliers, ..PLAIN }, 2, 3_000);
        let flag = |_: &i64| i64::from(source.0.next_u64() % 1_000 < lost_per_mille);
        subject.series[1].values = subject.series[1].values.iter().map(flag).collect();
        subject.series[1].quantity = Quantity::Lost;
        subject
    };
    let first = subject(&mut source, 10, 2);
    let figure = |second: &Subject, series: usize, figure: &str| {
        let comparison = compare(&first, second, EFFECT).expect("of a kind");
        let mut figures = comparison.series[series].figures.clone();
        figures.retain(|f| f.figure == figure);
        figures.pop().expect("the figure").verdict
    };
    let same = subject(&mut source, 10, 2);
    let worse = subject(&mut source, 60, 40);
    for (series, name) in [(0, "p50"), (0, "p99"), (0, "max"), (1, "share")] {
        assert_eq!(figure(&same, series, name), Verdict::NotDistinguishable, "{name}");
    }
    assert_eq!(figure(&worse, 0, "p50"), Verdict::NotDistinguishable);
    assert_eq!(figure(&worse, 0, "p99"), Verdict::Worse);
    assert_eq!(figure(&worse, 0, "max"), Verdict::Worse);
    assert_eq!(figure(&worse, 1, "share"), Verdict::Worse);
    // Too few values lie beyond.
    assert_eq!(figure(&worse, 0, "p999"), Verdict::NotJudged);
}
