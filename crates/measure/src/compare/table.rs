//! A comparison for a terminal.

use super::document::{Comparison, FigureComparison, SeriesComparison, Values, Verdict};
use super::input::Quantity;
use super::runs::RUNS_ENOUGH;
use crate::grid::{grid, ruled};
use comfy_table::{Cell, CellAlignment};
use onbeat_model::time::Span;

/// Columns of text before those of numbers.
const TEXTS: usize = 3;

impl Comparison {
    /// For a terminal: every figure that was judged, and the verdict in one line.
    pub fn table(&self) -> String {
        let headings =
            ["run", "series", "figure", "first", "second", "change", "interval", "verdict"];
        let mut table = grid(&headings);
        for series in &self.series {
            for figure in series.figures.iter().filter(|f| f.verdict != Verdict::NotJudged) {
                let cells = series.cells(figure);
                let last = cells.len() - 1;
                table.add_row(cells.into_iter().enumerate().map(|(column, text)| {
                    let is_text = column < TEXTS || column == last;
                    let side = if is_text { CellAlignment::Left } else { CellAlignment::Right };
                    Cell::new(text).set_alignment(side)
                }));
            }
        }
        let mut lines = vec![ruled(&table), String::new()];
        lines.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        let unjudged = self.count(Verdict::NotJudged);
        if unjudged > 0 {
            let what = if self.too_few_runs() { "runs" } else { "values" };
            lines.push(format!("Too few {what}: {unjudged} figures are not judged."));
        }
        lines.push(self.conclusion());
        lines.join("\n")
    }

    /// Whether its runs were dealt to both sides, or would have been, were there enough.
    fn of_machine(&self) -> bool {
        let figures = || self.series.iter().flat_map(|series| &series.figures);
        self.too_few_runs() || figures().any(|figure| figure.chance_per_mille.is_some())
    }

    fn too_few_runs(&self) -> bool {
        self.resamples == 0
    }

    /// How many figures have this verdict.
    fn count(&self, verdict: Verdict) -> usize {
        let figures = self.series.iter().flat_map(|series| &series.figures);
        figures.filter(|figure| figure.verdict == verdict).count()
    }

    /// The verdict in a sentence or two.
    pub fn conclusion(&self) -> String {
        let (worse, better) = (self.count(Verdict::Worse), self.count(Verdict::Better));
        let effect = shown_per_mille(self.effect_per_mille);
        let error = shown_per_mille(self.error_per_mille);
        let judged = self.judged;
        let within = match self.of_machine() {
            true => ", if the runs of both took turns",
            false => "",
        };
        let changed = match (worse, better) {
            (0, 0) => format!("no figure changed by more than {effect} for sure"),
            (worse, 0) => format!("{worse} larger by more than {effect}"),
            (0, better) => format!("{better} smaller by more than {effect}"),
            (worse, better) => format!("{worse} larger by more than {effect}, {better} smaller"),
        };
        match self.verdict {
            Verdict::NotJudged => format!(
                "Whether they differ cannot be told: {}.",
                match self.too_few_runs() {
                    true => format!(
                        "{} and {} runs are too few to know how far runs of one setting are apart; \
                         {RUNS_ENOUGH} of each, in turns, can be told apart",
                        self.runs[0], self.runs[1]
                    ),
                    false => "no series has enough values in both".to_owned(),
                }
            ),
            verdict => format!(
                "The second is {}: of {judged} figures judged {changed}. Equal ones are called \
                 different in at most {error} of such comparisons{within}.",
                match verdict {
                    Verdict::NotDistinguishable => "not distinguishable from the first",
                    other => other.as_str(),
                }
            ),
        }
    }
}

impl SeriesComparison {
    /// The series for a person, without the scenario.
    pub(super) fn label(&self) -> String {
        match self.quantity {
            Quantity::Measured => self.name.clone(),
            quantity => format!("{}, {}", self.name, quantity.as_str()),
        }
    }

    fn cells(&self, figure: &FigureComparison) -> [String; 8] {
        let [first, second, change, interval] = figure.cells();
        let run = if self.run.is_empty() { "run" } else { &self.run };
        [
            run.to_owned(),
            self.label(),
            figure.figure.clone(),
            first,
            second,
            change,
            interval,
            figure.verdict.as_str().to_owned(),
        ]
    }
}

impl FigureComparison {
    /// Its values, in whatever unit.
    pub(super) fn amounts(&self) -> Option<&Values> {
        self.values_ns.as_ref().or(self.values_ppm.as_ref())
    }

    /// First, second, change, interval.
    pub(super) fn cells(&self) -> [String; 4] {
        let Some(values) = self.amounts() else { return [const { String::new() }; 4] };
        let is_time = self.values_ns.is_some();
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
}

/// Thousandths as per cent: `5 %`, `0.5 %`.
pub(super) fn shown_per_mille(per_mille: u32) -> String {
    match per_mille % 10 {
        0 => format!("{} %", per_mille / 10),
        tenths => format!("{}.{tenths} %", per_mille / 10),
    }
}
