//! What is said of the second of two runs. Pure; floating point occurs in probabilities and in
//! the stretch of intervals only, never in what is a time.

use super::document::{
    Comparison, FORMAT, FigureComparison, LargestMaxima, SeriesComparison, VERSION, Values, Verdict,
};
use super::input::{Different, Quantity, Series, Subject, common};
use super::resample::{
    BLOCKS_MAX, Largest, Ordered, RESAMPLES, Resampled, resample_share, t_beyond,
};

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
/// the first's figure.
///
/// # Errors
/// [`Different`] when the two are not of one system, or have no series in common.
pub fn compare(
    first: &Subject,
    second: &Subject,
    effect_per_mille: u32,
) -> Result<Comparison, Different> {
    let (pairs, notes) = common(first, second)?;
    let drawn: Vec<_> = (0..).zip(&pairs).map(|(at, pair)| Drawn::new(at, *pair)).collect();
    let judged: usize = drawn.iter().flat_map(|d| &d.figures).filter(|f| f.is_judged()).count();
    let rule = Rule {
        effect_per_mille,
        // Both directions of each figure share the error among all of them (Bonferroni, whose
        // first step Holm's is: whether anything is found is the same).
        level: f64::from(ERROR_PER_MILLE) / 1_000.0 / 2.0 / judged.max(1) as f64,
    };
    let series: Vec<_> = drawn.into_iter().map(|drawn| drawn.judge(&rule)).collect();
    Ok(Comparison {
        format: FORMAT.to_owned(),
        version: VERSION,
        kind: first.kind,
        system: first.system.clone(),
        effect_per_mille,
        error_per_mille: ERROR_PER_MILLE,
        judged: judged as u32,
        resamples: RESAMPLES as u32,
        verdict: worst(series.iter().map(|series| series.verdict)),
        notes,
        series,
    })
}

fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.max().unwrap_or(Verdict::NotJudged)
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
        let few = |wanted: usize| Basis::TooFew(format!("fewer than {wanted} values"));
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
            let needed = (VALUES_BEYOND * 10_000).div_ceil(per_10000.min(10_000 - per_10000));
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

    fn judge(self, rule: &Rule) -> SeriesComparison {
        let series = self.series;
        let figures: Vec<_> =
            self.figures.into_iter().map(|figure| rule.judge(figure, series)).collect();
        SeriesComparison {
            run: series[0].run.clone(),
            name: series[0].name.clone(),
            quantity: series[0].quantity,
            values: series.map(|s| s.values.len() as u64),
            verdict: worst(figures.iter().map(|figure| figure.verdict)),
            figures,
        }
    }
}

/// A verdict on one figure, and what else is known of it.
struct Judgement {
    interval: Option<[i64; 2]>,
    blocks: Option<[u32; 2]>,
    largest: Option<LargestMaxima>,
    verdict: Verdict,
    reason: String,
}

impl Rule {
    fn judge(&self, figure: DrawnFigure, series: [&Series; 2]) -> FigureComparison {
        let [first, second] = figure.values;
        let limit = self.limit(first);
        let change = second.saturating_sub(first);
        let judgement = match &figure.basis {
            Basis::TooFew(reason) => Judgement {
                interval: None,
                blocks: None,
                largest: None,
                verdict: Verdict::NotJudged,
                reason: reason.clone(),
            },
            Basis::Resampled(runs) => self.by_interval(runs, change, limit),
            Basis::Maxima => self.by_maxima(series),
        };
        let [low, high] = judgement.interval.map_or([None; 2], |ends| ends.map(Some));
        let values = Values {
            first,
            second,
            change,
            change_low: low,
            change_high: high,
            limit,
            seen_from: low.map(|low| limit.saturating_add(change.saturating_sub(low))),
        };
        let is_share = series[0].quantity == Quantity::Lost;
        FigureComparison {
            figure: figure.name.to_owned(),
            values_ns: (!is_share).then_some(values),
            values_ppm: is_share.then_some(values),
            blocks: judgement.blocks,
            largest: judgement.largest,
            verdict: judgement.verdict,
            verdict_reason: judgement.reason,
        }
    }

    /// The effect, of a figure; rounded up.
    fn limit(&self, figure: i64) -> i64 {
        let part = i128::from(figure).abs() * i128::from(self.effect_per_mille);
        i64::try_from((part + 999) / 1_000).unwrap_or(i64::MAX)
    }

    fn by_interval(&self, runs: &[Resampled; 2], change: i64, limit: i64) -> Judgement {
        let [low, high] = self.interval(runs, change);
        let (verdict, reason) = if low > limit {
            (Verdict::Worse, "the whole interval is above the limit")
        } else if high < -limit {
            (Verdict::Better, "the whole interval is below minus the limit")
        } else if low >= -limit && high <= limit {
            (Verdict::NotDistinguishable, "the whole interval is within the limit: no such change")
        } else {
            (Verdict::NotDistinguishable, "the interval reaches over the limit")
        };
        Judgement {
            interval: Some([low, high]),
            blocks: Some(runs.each_ref().map(|run| run.blocks as u32)),
            largest: None,
            verdict,
            reason: reason.to_owned(),
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
        let better = Largest::new((second, 0), (first, -effect));
        let verdict = if worse.probability() <= self.level {
            Verdict::Worse
        } else if better.probability() <= self.level {
            Verdict::Better
        } else {
            Verdict::NotDistinguishable
        };
        let reason = format!(
            "of the {} largest block maxima {} are the second's with the first's increased by the \
             effect, and {} the first's with these reduced by it",
            worse.of, worse.tested, better.tested
        );
        let largest = LargestMaxima {
            of: worse.of as u32,
            in_second: worse.tested as u32,
            in_first: better.tested as u32,
        };
        Judgement { interval: None, blocks: None, largest: Some(largest), verdict, reason }
    }
}
