//! Figures beside the paper's, as rows of text.

use super::published::{IN_WORDS, Published, published};
use crate::grid::{grid, ruled};
use crate::text::grouped;
use comfy_table::{Cell, CellAlignment};
use onbeat_measure::Signed;
use onbeat_measure::measurement::{Comparison, Measurement, Series, Stalls};
use onbeat_model::time::Span;

/// The columns of [`rows`].
pub(super) const HEADINGS: [&str; 9] =
    ["series", "samples", "min", "avg", "median", "p99", "p99.99", "max", "σ"];

/// A line of the table.
pub(super) struct Row {
    /// Whether the line is the paper's.
    pub(super) is_published: bool,
    pub(super) cells: Vec<String>,
}

/// Each series, and what is published beside it below.
pub(super) fn rows(measurement: &Measurement) -> Vec<Row> {
    let of_series = |series: &Series| {
        let ours = Row { is_published: false, cells: cells(series) };
        let theirs = published(series)
            .map(|published| Row { is_published: true, cells: published_cells(published) });
        std::iter::once(ours).chain(theirs).collect::<Vec<_>>()
    };
    measurement.series.iter().flat_map(of_series).collect()
}

fn cells(series: &Series) -> Vec<String> {
    let of = &series.figures;
    let times = [of.min, of.avg, of.p50, of.p99, of.p9999, of.max, of.stddev];
    let first = [series.name.clone(), grouped(of.count)];
    first.into_iter().chain(times.map(shown)).collect()
}

fn published_cells(of: &Published) -> Vec<String> {
    let said = |figure: Option<i64>| figure.map_or("–".to_owned(), shown);
    let none = || "–".to_owned();
    vec![
        format!("↳ {}", of.place),
        none(),
        said(of.min),
        said(of.avg),
        none(),
        none(),
        none(),
        said(of.max),
        said(of.stddev),
    ]
}

pub(super) fn shown(ns: i64) -> String {
    Span::from_ns(ns).to_string()
}

/// For a terminal: the figures, agreement with cyclictest, stalls, notes.
pub fn table(measurement: &Measurement) -> String {
    let mut grid = grid(&HEADINGS);
    for row in rows(measurement) {
        grid.add_row(row.cells.into_iter().enumerate().map(|(column, text)| {
            let side = if column == 0 { CellAlignment::Left } else { CellAlignment::Right };
            Cell::new(text).set_alignment(side)
        }));
    }
    let mut parts = vec![ruled(&grid)];
    parts.extend(signs(measurement));
    parts.push(wrapped(&format!("↳ {IN_WORDS}")));
    let lines = |lines: Vec<String>| (!lines.is_empty()).then(|| lines.join("\n"));
    let note = |note: &String| wrapped(&format!("note: {note}"));
    parts.extend(lines(measurement.comparisons.iter().map(compared).collect()));
    parts.extend(lines(measurement.stalls.iter().map(stalled).collect()));
    parts.extend(lines(measurement.notes.iter().map(note).collect()));
    parts.join("\n\n")
}

/// Of series whose values have signs, where they are with these.
pub(super) fn signs(measurement: &Measurement) -> Option<String> {
    let of = |series: &Series| {
        let Signed { min, avg, max } = series.figures.signed?;
        let [min, avg, max] = [min, avg, max].map(shown);
        Some(format!("{}: with signs {min} to {max}, {avg} on average", series.name))
    };
    let lines: Vec<_> = measurement.series.iter().filter_map(of).collect();
    (!lines.is_empty()).then(|| format!("Figures are of sizes. {}", lines.join("; ")))
}

/// A paragraph in lines for a terminal.
pub(super) fn wrapped(text: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let more = word.chars().count() + 1;
        if length > 0 && length + more > WIDTH {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
        }
        lines.push_str(word);
        length += more;
    }
    lines
}

/// How our wake-ups compare with cyclictest's, for a person.
pub fn compared(comparison: &Comparison) -> String {
    let percent = |per_mille: i64| {
        let sign = if per_mille < 1_000 { "−" } else { "+" };
        let off = per_mille.abs_diff(1_000);
        format!("{sign}{}.{} %", off / 10, off % 10)
    };
    format!(
        "{} beside {} in the same run: median {}, p99 {}",
        comparison.series,
        comparison.with,
        percent(comparison.p50_per_mille),
        percent(comparison.p99_per_mille)
    )
}

/// How often a series was late, and how often all together, for a person.
pub fn stalled(stalls: &Stalls) -> String {
    let together = match stalls.together {
        0 => "never all sides together".to_owned(),
        times => format!(
            "{} of these all {} sides together, for up to {}: the whole machine stood still",
            grouped(times),
            stalls.sides,
            shown(stalls.together_max)
        ),
    };
    format!(
        "{}: later than {} at {} of {} instants, {together}",
        stalls.series,
        shown(stalls.late_above),
        grouped(stalls.late),
        grouped(stalls.instants)
    )
}
