//! What was measured of segments, for a terminal.

use crate::grid::{grid, ruled};
use comfy_table::{Cell, CellAlignment};
use onbeat_measure::Statistics;
use onbeat_measure::segments::{Measured, Segment, WARNING};
use onbeat_model::time::Span;

/// For a terminal, with what a measurement cannot prove.
pub fn table(measured: &Measured) -> String {
    let headings = [
        "segment",
        "samples",
        "aborted",
        "min",
        "p50",
        "p99",
        "max",
        "WCET",
        "jitter",
        "abort",
        "processor time",
    ];
    let mut table = grid(&headings);
    for segment in &measured.segments {
        let figure = |of: &dyn Fn(&Statistics) -> i64| {
            segment.cpu_ns.as_ref().map_or("–".to_owned(), |cpu| shown(of(cpu)))
        };
        let cells = [
            name(segment),
            segment.samples.to_string(),
            segment.aborted.to_string(),
            figure(&|cpu| cpu.min),
            figure(&|cpu| cpu.p50),
            figure(&|cpu| cpu.p99),
            shown(segment.cpu_max_ns),
            shown(segment.wcet_ns),
            shown(segment.release_jitter_max_ns),
            if segment.aborted > 0 { shown(segment.abort_max_ns) } else { "–".to_owned() },
            sparkline(segment),
        ];
        let last = cells.len() - 1;
        table.add_row(cells.into_iter().enumerate().map(|(column, text)| {
            let side = if column == 0 || column == last {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            };
            Cell::new(text).set_alignment(side)
        }));
    }
    format!("{}\n\n{}", ruled(&table), WARNING)
}

pub(super) fn shown(ns: i64) -> String {
    Span::from_ns(ns).to_string()
}

/// For a person: `sensor: start → 16`.
pub(super) fn name(segment: &Segment) -> String {
    let (task, from) = segment.source.split_once(':').unwrap_or(("", &segment.source));
    let (_, to) = segment.destination.split_once(':').unwrap_or(("", &segment.destination));
    format!("{task}: {from} → {to}")
}

/// The histogram with one character a bin; bins without samples are blank.
fn sparkline(segment: &Segment) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = segment.histogram.iter().map(|bin| bin.count).max().unwrap_or(1);
    let mut text = String::new();
    let mut next = segment.histogram.first().map_or(0, |bin| bin.from_ns);
    for bin in &segment.histogram {
        if bin.from_ns > next {
            text.push(' ');
        }
        let level = (u128::from(bin.count) * 8).div_ceil(u128::from(most)).max(1) as usize;
        text.push(LEVELS[level - 1]);
        next = bin.to_ns;
    }
    text
}
