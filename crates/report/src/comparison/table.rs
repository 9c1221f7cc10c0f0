//! A comparison for a terminal.

use crate::grid::{grid, ruled};
use comfy_table::{Cell, CellAlignment};
use onbeat_measure::compare::{Comparison, FigureComparison, Quantity, SeriesComparison, Verdict};
use onbeat_model::time::Span;

/// Columns of text before those of numbers.
const TEXTS: usize = 3;

/// For a terminal: every figure that was judged, and the verdict in one line.
pub fn table(comparison: &Comparison) -> String {
    let headings = ["run", "series", "figure", "first", "second", "change", "interval", "verdict"];
    let mut table = grid(&headings);
    for series in &comparison.series {
        for figure in series.figures.iter().filter(|f| f.verdict != Verdict::NotJudged) {
            let cells = row(series, figure);
            let last = cells.len() - 1;
            table.add_row(cells.into_iter().enumerate().map(|(column, text)| {
                let is_text = column < TEXTS || column == last;
                let side = if is_text { CellAlignment::Left } else { CellAlignment::Right };
                Cell::new(text).set_alignment(side)
            }));
        }
    }
    let mut lines = vec![ruled(&table), String::new()];
    lines.extend(comparison.notes.iter().map(|note| format!("Note: {note}.")));
    let unjudged = comparison.count(Verdict::NotJudged);
    if unjudged > 0 {
        let what = if comparison.too_few_runs() { "runs" } else { "values" };
        lines.push(format!("Too few {what}: {unjudged} figures are not judged."));
    }
    lines.push(comparison.conclusion());
    lines.join("\n")
}

/// The series for a person, without the scenario.
pub(super) fn label(series: &SeriesComparison) -> String {
    match series.quantity {
        Quantity::Measured => series.name.clone(),
        quantity => format!("{}, {}", series.name, quantity.as_str()),
    }
}

fn row(series: &SeriesComparison, figure: &FigureComparison) -> [String; 8] {
    let [first, second, change, interval] = cells(figure);
    let run = if series.run.is_empty() { "run" } else { &series.run };
    [
        run.to_owned(),
        label(series),
        figure.figure.clone(),
        first,
        second,
        change,
        interval,
        figure.verdict.as_str().to_owned(),
    ]
}

/// First, second, change, interval.
pub(super) fn cells(figure: &FigureComparison) -> [String; 4] {
    let Some(values) = figure.amounts() else { return [const { String::new() }; 4] };
    let is_time = figure.values_ns.is_some();
    let shown = |value: i64| match is_time {
        true => Span::from_ns(value).to_string(),
        false => format!("{value} ppm"),
    };
    let part = match values.first {
        0 => String::new(),
        first => {
            let per_mille = i128::from(values.change) * 1000 / i128::from(first.abs());
            let sign = if values.change < 0 { "-" } else { "+" };
            format!(" ({sign}{}.{} %)", per_mille.abs() / 10, per_mille.abs() % 10)
        }
    };
    let plus = if values.change > 0 { "+" } else { "" };
    let interval = match values.change_low.zip(values.change_high) {
        Some((low, high)) => format!("{} to {}", shown(low), shown(high)),
        None => "–".to_owned(),
    };
    [
        shown(values.first),
        shown(values.second),
        format!("{plus}{}{part}", shown(values.change)),
        interval,
    ]
}
