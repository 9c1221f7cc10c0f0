//! The page on a comparison: the verdicts, and both distributions of each series.

use super::table::{cells, label};
use crate::page::Page;
use crate::text::grouped;
use onbeat_measure::compare::{
    Comparison, Quantity, Series, SeriesComparison, Subject, Verdict, shown_per_mille,
};
use serde::Serialize;

const PAGE: Page = Page {
    kicker: "two runs compared",
    body: include_str!("../../assets/comparison.html"),
    notes: "The JSON has whole nanoseconds.",
    styles: &[],
    script: include_str!("../../assets/comparison.js"),
    has_charts: true,
};
/// The series whose distributions are drawn, at most; those that changed come first.
const CHARTS_MAX: usize = 40;
/// The points of a distribution function, at most.
const POINTS_MAX: usize = 400;
/// The bars of a histogram.
const BINS: i64 = 60;

#[derive(Serialize)]
struct View {
    verdict: &'static str,
    class: &'static str,
    conclusion: String,
    about: Vec<(&'static str, String)>,
    notes: Vec<String>,
    series: Vec<SeriesView>,
    /// Judged by assignments of whole runs to the sides, not by intervals.
    by_assignments: bool,
    charts: Vec<Chart>,
    /// How many series are not drawn.
    undrawn: usize,
}

#[derive(Serialize)]
struct SeriesView {
    run: String,
    name: String,
    values: [String; 2],
    figures: Vec<FigureView>,
}

#[derive(Serialize)]
struct FigureView {
    figure: String,
    /// First, second, change, interval.
    cells: [String; 4],
    blocks: String,
    verdict: &'static str,
    class: &'static str,
    reason: String,
}

#[derive(Serialize)]
struct Chart {
    id: String,
    name: String,
    verdict: &'static str,
    class: &'static str,
}

/// What the script draws of one series.
#[derive(Serialize)]
struct Figure {
    id: String,
    runs: [Distribution; 2],
    /// The first bin's start and the bins' width.
    start_ns: i64,
    width_ns: i64,
}

#[derive(Serialize)]
struct Distribution {
    count: usize,
    /// The distribution function at some of its steps: values, and how many do not exceed them.
    values_ns: Vec<i64>,
    up_to: Vec<usize>,
    /// How many values are in each bin, and how many beyond the last.
    bins: Vec<u64>,
    beyond: u64,
}

#[derive(Serialize)]
struct Data {
    names: [String; 2],
    figures: Vec<Figure>,
}

/// The page on a comparison of two subjects that have these names.
pub fn html(comparison: &Comparison, subjects: [&Subject; 2], names: [&str; 2]) -> String {
    let mut drawn: Vec<_> =
        comparison.series.iter().filter(|s| s.quantity != Quantity::Lost).collect();
    drawn.sort_by_key(|series| std::cmp::Reverse(series.verdict));
    let undrawn = drawn.len().saturating_sub(CHARTS_MAX);
    drawn.truncate(CHARTS_MAX);
    let ids = || (0..).map(|number| format!("s{number}"));
    let charts = ids().zip(&drawn).map(|(id, series)| Chart {
        id,
        name: full_name(series),
        verdict: series.verdict.as_str(),
        class: class(series.verdict),
    });
    let figures = ids().zip(&drawn).filter_map(|(id, series)| {
        let of = |subject: &Subject| subject.series.iter().position(|s| is_of(s, series));
        let [first, second] = subjects.map(of);
        let values = [&subjects[0].series[first?].values, &subjects[1].series[second?].values];
        Some(figure(id, values.map(Vec::as_slice)))
    });
    let data = Data { names: names.map(str::to_owned), figures: figures.collect() };
    let view = View {
        verdict: comparison.verdict.as_str(),
        class: class(comparison.verdict),
        conclusion: comparison.conclusion(),
        about: about(comparison, names),
        notes: comparison.notes.clone(),
        series: comparison.series.iter().map(series_view).collect(),
        by_assignments: by_assignments(comparison),
        charts: charts.collect(),
        undrawn,
    };
    let title = match comparison.system.as_str() {
        "" => "Measurements",
        system => system,
    };
    PAGE.render(title, &view, &data)
}

fn by_assignments(comparison: &Comparison) -> bool {
    let figures = comparison.series.iter().flat_map(|series| &series.figures);
    figures.into_iter().any(|figure| figure.chance_per_mille.is_some())
}

fn about(comparison: &Comparison, names: [&str; 2]) -> Vec<(&'static str, String)> {
    vec![
        ("First", names[0].to_owned()),
        ("Second", names[1].to_owned()),
        ("Effect", shown_per_mille(comparison.effect_per_mille)),
        ("Figures judged", grouped(comparison.judged.into())),
        (
            "Equal ones called different",
            format!("≤ {}", shown_per_mille(comparison.error_per_mille)),
        ),
        ("Runs", format!("{}, {}", comparison.runs[0], comparison.runs[1])),
        ("Resamples or assignments", grouped(comparison.resamples.into())),
    ]
}

/// The style sheet's name for a verdict.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse | Verdict::Mixed => "broken",
        Verdict::Better => "kept",
        Verdict::NotDistinguishable => "no-promise",
        Verdict::NotJudged => "not-judged",
    }
}

fn is_of(series: &Series, compared: &SeriesComparison) -> bool {
    series.quantity == compared.quantity
        && series.name == compared.name
        && series.run == compared.run
}

fn full_name(series: &SeriesComparison) -> String {
    match series.run.as_str() {
        "" => label(series),
        run => format!("{run}: {}", label(series)),
    }
}

fn series_view(series: &SeriesComparison) -> SeriesView {
    let figures = series.figures.iter().map(|figure| FigureView {
        figure: figure.figure.clone(),
        cells: cells(figure),
        blocks: figure.blocks.map_or("–".to_owned(), |[a, b]| format!("{a}, {b}")),
        verdict: figure.verdict.as_str(),
        class: class(figure.verdict),
        reason: figure.verdict_reason.clone(),
    });
    SeriesView {
        run: series.run.clone(),
        name: label(series),
        values: series.values.map(grouped),
        figures: figures.collect(),
    }
}

/// Both runs in the same bins, which reach up to what 995 of 1,000 values do not exceed.
fn figure(id: String, values: [&[i64]; 2]) -> Figure {
    let sorted = values.map(|values| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted
    });
    let ends = |of: &dyn Fn(&Vec<i64>) -> i64| [of(&sorted[0]), of(&sorted[1])];
    let [a, b] = ends(&|run| run[0]);
    let start_ns = a.min(b);
    let [a, b] = ends(&|run| run[(run.len() - 1) * 995 / 1000]);
    let range = a.max(b).saturating_sub(start_ns);
    let width_ns = range / BINS + 1;
    let runs = sorted.map(|run| distribution(&run, start_ns, width_ns));
    Figure { id, runs, start_ns, width_ns }
}

fn distribution(sorted: &[i64], start_ns: i64, width_ns: i64) -> Distribution {
    let mut bins = vec![0; BINS as usize];
    let mut beyond = 0;
    for value in sorted {
        let bin = value.saturating_sub(start_ns) / width_ns;
        match bins.get_mut(bin as usize) {
            Some(count) => *count += 1,
            None => beyond += 1,
        }
    }
    // Steps at equal distances, and in the tail at each of the last values.
    let count = sorted.len();
    let step = count.div_ceil(POINTS_MAX / 2).max(1);
    let mut ranks: Vec<usize> = (0..count).step_by(step).collect();
    ranks.extend(count.saturating_sub(POINTS_MAX / 2)..count);
    ranks.sort_unstable();
    let mut at: Vec<(i64, usize)> = Vec::new();
    for rank in ranks {
        match at.last_mut() {
            Some((value, up_to)) if *value == sorted[rank] => *up_to = rank + 1,
            _ => at.push((sorted[rank], rank + 1)),
        }
    }
    let (values_ns, up_to) = at.into_iter().unzip();
    Distribution { count, values_ns, up_to, bins, beyond }
}
