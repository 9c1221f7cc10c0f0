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
            let per_mille = per_mille(values.change, first);
            let sign = if per_mille < 0 { "-" } else { "+" };
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

/// A change in thousandths of what it is from, which is not 0; halves are rounded away from zero.
fn per_mille(change: i64, from: i64) -> i128 {
    let (change, from) = (i128::from(change), i128::from(from).abs());
    (change.abs() * 2000 + from) / (2 * from) * change.signum()
}

#[cfg(test)]
mod tests {
    use super::per_mille;

    #[test]
    fn changes_are_rounded_to_the_nearest_thousandth_and_halves_away_from_zero() {
        let cases =
            [(200, 700, 286), (-93, 57_632, -2), (1, 2_000, 1), (-1, 2_000, -1), (-1, 2_001, 0)];
        for (change, from, rounded) in cases {
            assert_eq!(per_mille(change, from), rounded, "{change} of {from}");
            assert_eq!(per_mille(change, -from), rounded, "{change} of -{from}");
        }
        assert_eq!(per_mille(i64::MIN, i64::MIN), -1_000);
    }
}
