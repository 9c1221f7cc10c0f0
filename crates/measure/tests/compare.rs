//! Comparisons of runs whose truth is known: equal ones must not be told apart, shifts must be
//! seen; heavy tails, values that resemble their neighbours and drift must not change that.

use onbeat_measure::compare::{Comparison, Kind, Quantity, Series, Subject, Verdict, compare};
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
        let one = |number| {
            let name = format!("series.{number}");
            Series::new("", &name, Quantity::Measured, self.values(nature, values))
        };
        Subject {
            kind: Kind::Simulation,
            of_machine: false,
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

/// Both ways round; they say the same.
fn both_ways(first: &Subject, second: &Subject, effect: u32) -> Comparison {
    let compare = |a, b| compare(a, b, effect).expect("they are of a kind");
    let (comparison, mirrored) = (compare(first, second), compare(second, first));
    let other = |verdict| match verdict {
        Verdict::Worse => Verdict::Better,
        Verdict::Better => Verdict::Worse,
        same => same,
    };
    assert_eq!(comparison.verdict, other(mirrored.verdict));
    for (series, theirs) in comparison.series.iter().zip(&mirrored.series) {
        assert_eq!((&series.name, series.verdict), (&theirs.name, other(theirs.verdict)));
        for (figure, theirs) in series.figures.iter().zip(&theirs.figures) {
            assert_eq!(figure.verdict, other(theirs.verdict), "{figure:?} {theirs:?}");
            let values = figure.values_ns.or(figure.values_ppm).expect("a figure");
            let theirs = theirs.values_ns.or(theirs.values_ppm).expect("a figure");
            assert_eq!((values.change, values.limit), (-theirs.change, theirs.limit));
            let low = theirs.change_high.map(|high| -high);
            assert_eq!(values.change_low, low, "the same interval");
        }
    }
    comparison
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
        if repetition.is_multiple_of(20) {
            both_ways(&first, &second, EFFECT);
            both_ways(&first, &shifted(second.clone(), slower, 10), EFFECT);
        }
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

/// The effect forgives much; without it the intervals have to be right by themselves. They are a
/// little short: resampled quantiles with few values beyond them spread too little. Of these 400
/// comparisons 24 are wrong where 20 may be; more than 10 of 100 must not.
#[test]
fn without_any_effect_equal_runs_are_told_apart_in_a_tenth_of_comparisons_at_most() {
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

/// A measurement of a machine of which each run is another, by a factor whose standard deviation
/// is `between`; now and then one is twice as slow for as long as it lasts.
fn machine(source: &mut Source, between: f64, runs: usize, percent: i64) -> Subject {
    let run = |_| {
        let factor = (between * source.normal()).exp();
        let factor = if source.0.next_u64().is_multiple_of(20) { 2.0 * factor } else { factor };
        let mut run = source.subject(PLAIN, 3, 500);
        (run.kind, run.of_machine) = (Kind::Measurement, true);
        for value in run.series.iter_mut().flat_map(|series| &mut series.values) {
            *value = (*value as f64 * factor) as i64 * (100 + percent) / 100;
        }
        run
    };
    Subject::joined((0..runs).map(run).collect()).expect("of a kind")
}

#[test]
fn equal_machines_whose_runs_differ_are_told_apart_in_a_twentieth_of_comparisons_at_most() {
    for (runs, between) in [([4, 4], 0.1), ([5, 5], 0.01), ([6, 6], 0.3), ([3, 7], 0.1)] {
        let different = |repetition: &u64| {
            let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(9_000 + repetition));
            let [first, second] = runs.map(|runs| machine(&mut source, between, runs, 0));
            both_ways(&first, &second, EFFECT).verdict != Verdict::NotDistinguishable
        };
        let different = (0..2 * REPETITIONS).filter(different).count() as u64;
        println!("{runs:?}, {between}: of {}, {different} told apart", 2 * REPETITIONS);
        assert!(different * 20 <= 2 * REPETITIONS, "{runs:?}: {different} told apart");
    }
}

#[test]
fn a_slower_machine_is_found_with_as_many_runs_as_its_runs_differ() {
    for (runs, between, percent) in [(4, 0.005, 15), (6, 0.02, 25), (8, 0.1, 200)] {
        let found = |repetition: &u64| {
            let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(4_000 + repetition));
            let first = machine(&mut source, between, runs, 0);
            let second = machine(&mut source, between, runs, percent);
            verdict(&first, &second, EFFECT) == Verdict::Worse
        };
        let found = (0..REPETITIONS).filter(found).count() as u64;
        println!("{runs} runs, {between} apart, {percent} % slower: {found} of {REPETITIONS}");
        assert!(found * 2 >= REPETITIONS, "{runs} runs, {percent} %: only {found} were found");
    }
}

#[test]
fn one_run_of_a_machine_says_nothing_of_the_next() {
    let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(7));
    for (runs, percent) in [(1, 0), (1, 300), (3, 300)] {
        let first = machine(&mut source, 0.05, runs, 0);
        let second = machine(&mut source, 0.05, runs, percent);
        let comparison = both_ways(&first, &second, EFFECT);
        assert_eq!(comparison.verdict, Verdict::NotJudged);
        assert_eq!((comparison.runs, comparison.judged), ([runs as u32; 2], 0));
        let said = comparison.conclusion();
        assert!(said.contains("cannot be told") && said.contains("4 of each"), "{said}");
        let reason = &comparison.series[0].figures[1].verdict_reason;
        assert!(reason.contains("too few to know"), "{reason}");
    }
}

#[test]
fn a_figure_that_is_worse_and_one_that_is_better_are_mixed() {
    let mut source = Source(Xoshiro256PlusPlus::seed_from_u64(8));
    let first = source.subject(PLAIN, 3, 1_000);
    let mut second = shifted(source.subject(PLAIN, 3, 1_000), 1, 20);
    second.series[1].values.iter_mut().for_each(|value| *value -= *value / 5);
    let comparison = both_ways(&first, &second, EFFECT);
    let verdicts: Vec<_> = comparison.series.iter().map(|series| series.verdict).collect();
    assert_eq!(verdicts, [Verdict::Worse, Verdict::Better, Verdict::NotDistinguishable]);
    assert_eq!(comparison.verdict, Verdict::Mixed);
    let said = comparison.conclusion();
    assert!(said.starts_with("The second is mixed"), "{said}");
}

#[test]
fn a_step_of_the_clock_is_no_change() {
    let subject = |middle: i64| {
        let run = |number: i64| {
            let values = (0..500).map(|i| middle + 10 * ((i * i + number) % 3)).collect();
            Subject {
                kind: Kind::Measurement,
                of_machine: true,
                system: String::new(),
                settings: Default::default(),
                series: vec![Series::new("", "clock.lc", Quantity::Measured, values)],
            }
        };
        Subject::joined((0..6).map(run).collect()).expect("of a kind")
    };
    // A clock that ticks each 10 ns does not show 10 ns, though it is a third.
    assert_eq!(verdict(&subject(30), &subject(40), EFFECT), Verdict::NotDistinguishable);
    assert_eq!(verdict(&subject(30), &subject(60), EFFECT), Verdict::Worse);
}
