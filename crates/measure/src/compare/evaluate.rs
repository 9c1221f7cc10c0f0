//! What is said of the second of two runs. Pure; floating point occurs in probabilities and in
//! the stretch of intervals only, never in what is a time.

use super::document::{
    Comparison, FORMAT, FigureComparison, LargestMaxima, SeriesComparison, VERSION, Values, Verdict,
};
use super::input::{Different, Quantity, Series, Subject, common};
use super::resample::{
    BLOCKS_MAX, Largest, Ordered, RESAMPLES, Resampled, resample_share, share, t_beyond,
};
use super::runs::{self, OfRuns};

/// How often equal runs may be found different, in thousandths of comparisons.
const ERROR_PER_MILLE: u32 = 50;
/// A quantile is judged if so many values are on either side of it.
const VALUES_BEYOND: usize = 20;
/// The maximum, and a share, are judged from so many values on.
const VALUES_MIN: usize = 2 * BLOCKS_MAX;
/// The interval's ends before they are stretched: this place among the resamples from either end.
const END: usize = RESAMPLES / 200;
/// The deviate of the normal distribution that is exceeded that rarely: once in 200 times.
const END_DEVIATE: f64 = 2.575_829_304;
/// Where all random numbers come from.
const SEED: u64 = 0x6f6e_6265_6174_0001;

/// The quantiles that are judged, in ten-thousandths.
const QUANTILES: [(&str, usize); 6] = [
    ("p10", 1_000),
    ("p50", 5_000),
    ("p90", 9_000),
    ("p99", 9_900),
    ("p999", 9_990),
    ("p9999", 9_999),
];

/// Compares `second` with `first`. A change is one of more than `effect_per_mille` thousandths of
/// the smaller figure. Whichever of two comes first, the same is said of them.
///
/// # Errors
/// [`Different`] when the two are not of one system, or have no series in common.
pub fn compare(
    first: &Subject,
    second: &Subject,
    effect_per_mille: u32,
) -> Result<Comparison, Different> {
    let (pairs, notes) = common(first, second)?;
    let of_machine = first.of_machine || second.of_machine;
    let mut ordered: Vec<(usize, [&Series; 2])> = pairs.into_iter().enumerate().collect();
    // One order of series, and of the two: random numbers are the same then.
    ordered.sort_by_cached_key(|(_, [series, _])| series.key());
    let values = |side: usize| ordered.iter().map(move |(_, pair)| &pair[side].values);
    let mirrored = values(1).lt(values(0));
    let ordered: Vec<_> = (ordered.into_iter())
        .map(|(place, [a, b])| (place, if mirrored { [b, a] } else { [a, b] }))
        .collect();
    let pairs: Vec<_> = ordered.iter().map(|(_, pair)| *pair).collect();
    let (judged, draws, series) = match of_machine {
        true => evaluate_runs(&pairs, effect_per_mille),
        false => evaluate_values(&pairs, effect_per_mille),
    };
    let places = ordered.iter().map(|(place, _)| *place);
    let mut series: Vec<_> = places.zip(series).collect();
    series.sort_by_key(|(place, _)| *place);
    let series: Vec<_> = (series.into_iter())
        .map(|(_, series)| if mirrored { series.mirrored() } else { series })
        .map(SeriesComparison::from)
        .collect();
    Ok(Comparison {
        format: FORMAT.to_owned(),
        version: VERSION,
        kind: first.kind,
        system: first.system.clone(),
        effect_per_mille,
        error_per_mille: ERROR_PER_MILLE,
        runs: [first, second].map(|subject| subject.runs() as u32),
        judged: judged as u32,
        resamples: draws as u32,
        verdict: Verdict::of_all(series.iter().map(|series| series.verdict)),
        notes,
        series,
    })
}

/// What a series was judged: how many figures in all, of how many draws, and each series.
type Judged<'a> = (usize, usize, Vec<JudgedSeries<'a>>);

/// By the values within runs, where nothing else differs from run to run.
fn evaluate_values<'a>(pairs: &[[&'a Series; 2]], effect_per_mille: u32) -> Judged<'a> {
    let drawn: Vec<_> = (0..).zip(pairs).map(|(at, pair)| Drawn::new(at, *pair)).collect();
    let judged: usize = drawn.iter().flat_map(|d| &d.figures).filter(|f| f.is_judged()).count();
    let rule = Rule {
        effect_per_mille,
        // Both directions of each figure share the error among all of them (Bonferroni, whose
        // first step Holm's is: whether anything is found is the same).
        level: f64::from(ERROR_PER_MILLE) / 1_000.0 / 2.0 / judged.max(1) as f64,
    };
    (judged, RESAMPLES, drawn.into_iter().map(|drawn| drawn.evaluate(&rule)).collect())
}

/// By the figures of whole runs, where a machine's time is in them.
fn evaluate_runs<'a>(pairs: &[[&'a Series; 2]], effect_per_mille: u32) -> Judged<'a> {
    let sides = pairs.first().map_or([0; 2], |pair| pair.map(|series| series.runs.len()));
    let deals = runs::deals(sides[0], sides[1], SEED);
    // This way and the one that has the sides the other way round show the most at best.
    let alike = if sides[0] == sides[1] { 2_000 } else { 1_000 };
    let enough = alike <= ERROR_PER_MILLE as usize * deals.len();
    let figures: Vec<_> =
        pairs.iter().map(|pair| figures_of_runs(*pair, effect_per_mille)).collect();
    let judgeable = |figure: &&FigureOfRuns| enough && figure.few.is_none();
    let both = |figure: &FigureOfRuns| {
        [1, -1].map(|sign| figure.of_runs.differences(figure.limit, sign, &deals))
    };
    let differences: Vec<_> = figures.iter().flatten().filter(judgeable).flat_map(both).collect();
    let largest = runs::largest(&differences, deals.len());
    let mut shown = differences.iter().map(|of_deals| of_deals[0]);
    let evaluate = |(figures, pair): (Vec<FigureOfRuns>, &[&'a Series; 2])| {
        let evaluate = |figure: FigureOfRuns| {
            let chances = judgeable(&&figure).then(|| {
                [(); 2].map(|()| {
                    let shown = shown.next().expect("two of each that is judged");
                    runs::chance_per_mille(shown, &largest)
                })
            });
            figure.judged(sides, chances)
        };
        JudgedSeries { series: *pair, figures: figures.into_iter().map(evaluate).collect() }
    };
    let judged = differences.len() / 2;
    let series = figures.into_iter().zip(pairs).map(evaluate).collect();
    (judged, if enough { deals.len() } else { 0 }, series)
}

/// A figure of each run of both sides.
struct FigureOfRuns {
    name: &'static str,
    of_runs: OfRuns,
    limit: i64,
    /// Why a run has none.
    few: Option<String>,
}

/// Why a figure is not judged.
fn fewer(wanted: usize) -> String {
    format!("fewer than {wanted} values")
}

fn figures_of_runs(pair: [&Series; 2], effect_per_mille: u32) -> Vec<FigureOfRuns> {
    let all = || pair.into_iter().flat_map(Series::each_run);
    let first = pair[0].runs.len();
    let shortest = all().map(<[i64]>::len).min().unwrap_or(0);
    let is_share = pair[0].quantity == Quantity::Lost;
    // A change that the clock does not resolve is none.
    let step = match is_share {
        true => 0,
        false => pair.into_iter().map(|series| runs::step(&series.values)).max().unwrap_or(1),
    };
    let figure = |name, needed: usize, values: Vec<i64>| {
        let of_runs = OfRuns { values, first };
        let [a, b] = of_runs.means();
        let limit = limit(a, b, effect_per_mille).max(step);
        let few = (shortest < needed).then(|| fewer(needed));
        FigureOfRuns { name, of_runs, limit, few }
    };
    if is_share {
        return vec![figure("share", VALUES_MIN, all().map(share).collect())];
    }
    let ordered: Vec<_> = all().map(Ordered::new).collect();
    let quantile = |(name, per_10000): (&'static str, usize)| {
        let values = ordered.iter().map(|run| run.quantile(per_10000)).collect();
        figure(name, values_needed(per_10000), values)
    };
    let mut figures: Vec<_> = QUANTILES.into_iter().map(quantile).collect();
    figures.push(figure("max", VALUES_MIN, ordered.iter().map(Ordered::max).collect()));
    figures
}

impl FigureOfRuns {
    /// `chances`, if it is judged: that it is larger, and that it is smaller, by chance.
    fn judged(self, sides: [usize; 2], chances: Option<[u32; 2]>) -> JudgedFigure {
        let values = self.of_runs.means();
        let told = |chance: u32| chance <= ERROR_PER_MILLE;
        let verdict = match chances {
            None => Verdict::NotJudged,
            Some([larger, _]) if told(larger) => Verdict::Worse,
            Some([_, smaller]) if told(smaller) => Verdict::Better,
            Some(_) => Verdict::NotDistinguishable,
        };
        let judgement = Judgement {
            interval: chances.map(|_| self.of_runs.reach()),
            blocks: None,
            largest: None,
            chance_per_mille: chances.map(|[larger, smaller]| larger.min(smaller)),
            verdict,
        };
        let few = self.few.unwrap_or_else(|| {
            let [first, second] = sides;
            format!("{first} and {second} runs: too few to know how far runs are apart by chance")
        });
        JudgedFigure { name: self.name, values, limit: self.limit, is_share: false, few, judgement }
    }
}

/// The effect, of two figures: of the smaller, so that it is the same either way; rounded up.
fn limit(first: i64, second: i64, effect_per_mille: u32) -> i64 {
    let smaller = i128::from(first).abs().min(i128::from(second).abs());
    let part = smaller * i128::from(effect_per_mille);
    i64::try_from((part + 999) / 1_000).unwrap_or(i64::MAX)
}

/// From how many values on a quantile is judged.
fn values_needed(per_10000: usize) -> usize {
    (VALUES_BEYOND * 10_000).div_ceil(per_10000.min(10_000 - per_10000))
}

/// What a figure is judged by.
struct Rule {
    effect_per_mille: u32,
    /// How probable an error may be, per figure and direction.
    level: f64,
}

/// One series of both runs with what was drawn from them.
struct Drawn<'a> {
    series: [&'a Series; 2],
    figures: Vec<DrawnFigure>,
}

struct DrawnFigure {
    name: &'static str,
    values: [i64; 2],
    basis: Basis,
}

/// What a figure can be judged from.
enum Basis {
    /// Nothing.
    TooFew(String),
    /// Resamples of both.
    Resampled([Resampled; 2]),
    /// The order of block maxima.
    Maxima,
}

impl DrawnFigure {
    fn is_judged(&self) -> bool {
        !matches!(self.basis, Basis::TooFew(_))
    }
}

impl<'a> Drawn<'a> {
    fn new(number: u64, series: [&'a Series; 2]) -> Self {
        let stream = |figure: u64, run: u64| SEED.wrapping_add((number << 8) + (figure << 1) + run);
        let shortest = series.iter().map(|s| s.values.len()).min().unwrap_or(0);
        let few = |wanted: usize| Basis::TooFew(fewer(wanted));
        if series[0].quantity == Quantity::Lost {
            let [a, b] =
                [0, 1].map(|run| resample_share(&series[run].values, stream(0, run as u64)));
            let values = [a.value, b.value];
            let enough = shortest >= VALUES_MIN;
            let basis = if enough { Basis::Resampled([a, b]) } else { few(VALUES_MIN) };
            return Self { series, figures: vec![DrawnFigure { name: "share", values, basis }] };
        }
        let ordered = series.map(|s| Ordered::new(&s.values));
        let mut figures = Vec::new();
        for (at, (name, per_10000)) in (0..).zip(QUANTILES) {
            let values = [0, 1].map(|run| ordered[run].quantile(per_10000));
            let needed = values_needed(per_10000);
            let resampled = |run: usize| ordered[run].resample(per_10000, stream(at, run as u64));
            let basis = match ordered.iter().all(|run| run.len() >= needed) {
                true => Basis::Resampled([resampled(0), resampled(1)]),
                false => few(needed),
            };
            figures.push(DrawnFigure { name, values, basis });
        }
        let values = [0, 1].map(|run| ordered[run].max());
        let basis = if shortest >= VALUES_MIN { Basis::Maxima } else { few(VALUES_MIN) };
        figures.push(DrawnFigure { name: "max", values, basis });
        Self { series, figures }
    }

    fn evaluate(self, rule: &Rule) -> JudgedSeries<'a> {
        let series = self.series;
        let figures = self.figures.into_iter().map(|figure| rule.evaluate(figure, series));
        JudgedSeries { series, figures: figures.collect() }
    }
}

/// A verdict on one figure, and what else is known of it.
struct Judgement {
    interval: Option<[i64; 2]>,
    blocks: Option<[u32; 2]>,
    largest: Option<LargestMaxima>,
    chance_per_mille: Option<u32>,
    verdict: Verdict,
}

/// A figure with its verdict, of the second of both.
struct JudgedFigure {
    name: &'static str,
    values: [i64; 2],
    limit: i64,
    is_share: bool,
    /// Why it is not judged, if it is not.
    few: String,
    judgement: Judgement,
}

/// A series with the verdicts on its figures.
struct JudgedSeries<'a> {
    series: [&'a Series; 2],
    figures: Vec<JudgedFigure>,
}

impl JudgedSeries<'_> {
    /// The same, of the first compared with the second.
    fn mirrored(mut self) -> Self {
        self.series.reverse();
        for JudgedFigure { values, judgement, .. } in &mut self.figures {
            values.reverse();
            judgement.interval = judgement.interval.map(|[low, high]| [-high, -low]);
            judgement.blocks = judgement.blocks.map(|[first, second]| [second, first]);
            if let Some(LargestMaxima { in_second, in_first, .. }) = &mut judgement.largest {
                std::mem::swap(in_second, in_first);
            }
            judgement.verdict = judgement.verdict.mirrored();
        }
        self
    }
}

impl From<JudgedSeries<'_>> for SeriesComparison {
    fn from(judged: JudgedSeries<'_>) -> Self {
        let series = judged.series;
        let is_share = series[0].quantity == Quantity::Lost;
        let figure = |figure| FigureComparison::from(JudgedFigure { is_share, ..figure });
        let figures: Vec<_> = judged.figures.into_iter().map(figure).collect();
        Self {
            run: series[0].run.clone(),
            name: series[0].name.clone(),
            quantity: series[0].quantity,
            values: series.map(|s| s.values.len() as u64),
            verdict: Verdict::of_all(figures.iter().map(|figure| figure.verdict)),
            figures,
        }
    }
}

impl From<JudgedFigure> for FigureComparison {
    fn from(figure: JudgedFigure) -> Self {
        let verdict_reason = figure.reason();
        let JudgedFigure { name, values: [first, second], limit, is_share, judgement, .. } = figure;
        let [low, high] = judgement.interval.map_or([None; 2], |ends| ends.map(Some));
        let change = second.saturating_sub(first);
        let values = Values {
            first,
            second,
            change,
            change_low: low,
            change_high: high,
            limit,
            seen_from: low.map(|low| limit.saturating_add(change.saturating_sub(low))),
        };
        Self {
            figure: name.to_owned(),
            values_ns: (!is_share).then_some(values),
            values_ppm: is_share.then_some(values),
            blocks: judgement.blocks,
            largest: judgement.largest,
            chance_per_mille: judgement.chance_per_mille,
            verdict: judgement.verdict,
            verdict_reason,
        }
    }
}

impl JudgedFigure {
    /// Why, for a person.
    fn reason(&self) -> String {
        let Judgement { interval, largest, chance_per_mille, verdict, .. } = &self.judgement;
        if *verdict == Verdict::NotJudged {
            return self.few.clone();
        }
        if let Some(chance) = chance_per_mille {
            return format!(
                "of 1,000 ways to deal the runs to both sides, {chance} show as much beyond the \
                 limit in some figure"
            );
        }
        if let Some(LargestMaxima { of, in_second, in_first }) = largest {
            return format!(
                "of the {of} largest block maxima {in_second} are the second's with the first's \
                 increased by the effect, and {in_first} the first's with the second's increased"
            );
        }
        let within = interval.is_some_and(|[l, h]| l >= -self.limit && h <= self.limit);
        let reason = match verdict {
            Verdict::Worse => "the whole interval is above the limit",
            Verdict::Better => "the whole interval is below minus the limit",
            _ if within => "the whole interval is within the limit: no such change",
            _ => "the interval reaches over the limit",
        };
        reason.to_owned()
    }
}

impl Rule {
    fn evaluate(&self, figure: DrawnFigure, series: [&Series; 2]) -> JudgedFigure {
        let DrawnFigure { name, values, basis } = figure;
        let [first, second] = values;
        let limit = limit(first, second, self.effect_per_mille);
        let change = second.saturating_sub(first);
        let mut few = String::new();
        let judgement = match basis {
            Basis::TooFew(reason) => {
                few = reason;
                Judgement {
                    interval: None,
                    blocks: None,
                    largest: None,
                    chance_per_mille: None,
                    verdict: Verdict::NotJudged,
                }
            }
            Basis::Resampled(runs) => self.by_interval(&runs, change, limit),
            Basis::Maxima => self.by_maxima(series),
        };
        JudgedFigure { name, values, limit, is_share: false, few, judgement }
    }

    fn by_interval(&self, runs: &[Resampled; 2], change: i64, limit: i64) -> Judgement {
        let [low, high] = self.interval(runs, change);
        let verdict = match () {
            () if low > limit => Verdict::Worse,
            () if high < -limit => Verdict::Better,
            () => Verdict::NotDistinguishable,
        };
        Judgement {
            interval: Some([low, high]),
            blocks: Some(runs.each_ref().map(|run| run.blocks as u32)),
            largest: None,
            chance_per_mille: None,
            verdict,
        }
    }

    /// Between which changes the true one is: the outer resamples' changes, as far from the
    /// observed one as Student's t asks for at this level with so few blocks.
    fn interval(&self, runs: &[Resampled; 2], change: i64) -> [i64; 2] {
        let pairs = runs[0].values.iter().zip(&runs[1].values);
        let mut changes: Vec<i64> = pairs.map(|(a, b)| b.saturating_sub(*a)).collect();
        changes.sort_unstable();
        let blocks = runs[0].blocks.min(runs[1].blocks) as f64;
        let few = (blocks / (blocks - 1.0)).sqrt();
        let stretch = few * t_beyond(self.level, blocks as usize - 1) / END_DEVIATE;
        let away = |distance: i64| (distance.max(0) as f64 * stretch).ceil() as i64;
        let low = away(change.saturating_sub(changes[END - 1]));
        let high = away(changes[changes.len() - END].saturating_sub(change));
        [change.saturating_sub(low), change.saturating_add(high)]
    }

    /// Whether the largest values are one run's: a single maximum is luck, most of the largest of
    /// many blocks are not.
    fn by_maxima(&self, series: [&Series; 2]) -> Judgement {
        let [first, second] = series.map(|s| s.values.as_slice());
        let effect = i128::from(self.effect_per_mille);
        let worse = Largest::new((first, effect), (second, 0));
        let better = Largest::new((second, effect), (first, 0));
        let verdict = if worse.probability() <= self.level {
            Verdict::Worse
        } else if better.probability() <= self.level {
            Verdict::Better
        } else {
            Verdict::NotDistinguishable
        };
        let largest = LargestMaxima {
            of: worse.of as u32,
            in_second: worse.tested as u32,
            in_first: better.tested as u32,
        };
        Judgement {
            interval: None,
            blocks: None,
            largest: Some(largest),
            chance_per_mille: None,
            verdict,
        }
    }
}
