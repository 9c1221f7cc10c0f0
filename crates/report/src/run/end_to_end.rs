//! What the user of a value sees: from its capture to the instant at which its reader continues, of
//! channels and of messages over TCP side by side, with published figures.

use super::figures::extremes;
use super::table::{UNKNOWN, references, scenario_name};
use crate::text::{grouped, per_mille, us};
use onbeat_measure::join::{self, Message};
use onbeat_measure::{ChannelResult, RunResult, Statistics, TcpResult, tcp};
use onbeat_model::record::RunLog;
use onbeat_model::system::{ChannelId, Quantity, Subject, System, TcpId};
use onbeat_model::time::Span;
use serde::Serialize;

/// What the cells of a row are; times in microseconds.
pub(super) const HEADINGS: [&str; 10] =
    ["run", "messages", "over", "n", "lost", "late", "max", "min", "avg", "σ"];
/// How many of them are no numbers.
pub(super) const TEXTS: usize = 3;
/// The messages that an average is of (Austad and Mathisen 2023, Figure 5).
const AVERAGED: usize = 100;
/// The plot in units of its SVG: from the left, from above, to the right and down.
const PLOT: [i64; 4] = [90, 10, 890, 210];
/// Beyond so many messages, of each of so many equal parts of the time only the extremes are drawn.
const POINTS_MAX: usize = 4_000;
const PARTS: i64 = 1_500;
/// The most points of an average.
const AVERAGES_MAX: usize = 1_000;

/// A row of the table, as plain text.
pub(super) struct Row {
    /// Whether it is of published figures.
    pub(super) is_published: bool,
    pub(super) cells: Vec<String>,
}

/// Whether there is anything to compare.
pub(super) fn is_asked_for(system: &System) -> bool {
    let asks = |quantity| quantity == Quantity::EndToEnd;
    !system.tcp.is_empty() || system.references.iter().any(|r| asks(r.quantity))
}

/// One row per run and channel whose readers wait, and per run and TCP flow, each followed by the
/// published figures of the same. The published rows have numbers behind their sources if they have
/// notes, counted from one over all runs.
pub(super) fn rows(system: &System, runs: &[&RunResult]) -> Vec<Row> {
    let mut rows = Vec::new();
    if !is_asked_for(system) {
        return rows;
    }
    for run in runs {
        for (id, channel) in (0..).map(ChannelId).zip(&run.channels) {
            if channel.end_to_end_ns.is_some() {
                rows.push(of_channel(run, channel));
                published(system, run, Subject::Channel(id), &channel.name, &mut rows);
            }
        }
        for (id, flow) in (0..).map(TcpId).zip(&run.tcp) {
            rows.push(of_tcp(run, flow));
            published(system, run, Subject::Tcp(id), &flow.name, &mut rows);
        }
    }
    rows
}

fn of_channel(run: &RunResult, channel: &ChannelResult) -> Row {
    let known = |count: Option<u64>| count.map_or(UNKNOWN.to_owned(), grouped);
    let over = if channel.protected { "channel, reserved" } else { "channel" };
    let counts = [known(channel.sent), known(channel.lost), known(channel.late)];
    measured(run, &channel.name, over, counts, channel.end_to_end_ns.as_ref())
}

fn of_tcp(run: &RunResult, flow: &TcpResult) -> Row {
    let lost = flow.lost.saturating_add(flow.unfinished);
    let counts = [flow.sent, lost, flow.late].map(grouped);
    measured(run, &flow.name, "TCP", counts, flow.end_to_end_ns.as_ref())
}

fn measured(
    run: &RunResult,
    name: &str,
    over: &str,
    counts: [String; 3],
    figures: Option<&Statistics>,
) -> Row {
    let mut cells = vec![scenario_name(&run.scenario).to_owned(), name.to_owned(), over.to_owned()];
    cells.extend(counts);
    let figure = |of: fn(&Statistics) -> i64| figures.map_or("–".to_owned(), |f| us(of(f)));
    cells.extend([figure(|f| f.max), figure(|f| f.min), figure(|f| f.avg), figure(|f| f.stddev)]);
    Row { is_published: false, cells }
}

fn published(system: &System, run: &RunResult, of: Subject, name: &str, rows: &mut Vec<Row>) {
    for reference in references(system, &run.scenario, of, Quantity::EndToEnd) {
        let figure = |span: Option<Span>| span.map_or("–".to_owned(), |span| us(span.as_ns()));
        let mut cells = vec![noted(system, reference), name.to_owned(), "published".to_owned()];
        let lost = reference.lost_per_mille.map_or("–".to_owned(), per_mille);
        cells.extend(["–".to_owned(), lost, "–".to_owned()]);
        cells.extend([reference.max, reference.min, reference.avg, reference.stddev].map(figure));
        rows.push(Row { is_published: true, cells });
    }
}

/// The source of published figures, with the number of their note.
pub(super) fn noted(system: &System, reference: &onbeat_model::system::Reference) -> String {
    let notes = notes(system);
    let number = reference.note.as_ref().and_then(|note| notes.iter().position(|n| n == note));
    match number {
        Some(number) => format!("{} [{}]", reference.source, number + 1),
        None => reference.source.clone(),
    }
}

/// The notes on published figures, each once, in the order of the description.
pub(super) fn notes(system: &System) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in system.references.iter().filter_map(|r| r.note.as_ref()) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

/// End-to-end times over the time, with their moving average.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    title: String,
    summary: String,
    /// The messages, as a path of dots.
    dots: String,
    /// The average, as the points of a line; empty if there are too few messages.
    average: String,
    top: String,
    bottom: String,
    end: String,
}

/// One per channel whose readers wait, and per TCP flow.
pub(super) fn charts(system: &System, result: &RunResult, log: &RunLog) -> Vec<Chart> {
    let mut charts = Vec::new();
    if !is_asked_for(system) {
        return charts;
    }
    let mut add = |name: &str, points: Vec<(i64, i64)>| {
        let title = format!("{name}: end to end over time");
        let plotted = Plotted { of: "messages", averaged: AVERAGED };
        charts.extend(Chart::new(title, plotted, &points, log.duration));
    };
    for (id, channel) in (0..).map(ChannelId).zip(&result.channels) {
        let joined = join::channel(log, id);
        let point = |m: &Message| Some((m.capture()?.as_ns(), m.end_to_end_ns()?));
        add(&channel.name, joined.messages().filter_map(point).collect());
    }
    for (flow, seen) in system.tcp.iter().zip(&log.tcp) {
        let points = seen.messages.iter();
        let points = points.filter_map(|m| Some((m.capture.as_ns(), tcp::end_to_end_ns(m)?)));
        add(&flow.name, points.collect());
    }
    charts
}

/// What the points of a chart are, and of how many of them the moving average is.
#[derive(Clone, Copy)]
pub(super) struct Plotted {
    pub(super) of: &'static str,
    pub(super) averaged: usize,
}

impl Chart {
    /// `points` are instants and values, in nanoseconds. None without points.
    pub(super) fn new(
        title: String,
        Plotted { of, averaged }: Plotted,
        points: &[(i64, i64)],
        duration: Span,
    ) -> Option<Self> {
        let mut points = points.to_vec();
        points.sort_by_key(|point| point.0);
        let values = || points.iter().map(|point| point.1);
        let (low, high) = (values().min()?, values().max()?);
        let end = duration.as_ns().max(1);
        let [left, above, right, below] = PLOT;
        let place = |value: i64, of: i64, size: i64| {
            let of = i128::from(of.max(1));
            (i128::from(value) * i128::from(size) / of).clamp(0, i128::from(size)) as i64
        };
        let height = high.saturating_sub(low);
        let x = |at: i64| left + place(at, end, right - left);
        let y = |value: i64| above + place(high.saturating_sub(value), height, below - above);
        let part_ns = (end / PARTS).max(1);
        let drawn =
            if points.len() > POINTS_MAX { extremes(&points, part_ns) } else { points.clone() };
        let mut dots: Vec<_> = drawn.iter().map(|(at, value)| (x(*at), y(*value))).collect();
        dots.dedup();
        let averages = averages(&points, averaged);
        let step = averages.len().div_ceil(AVERAGES_MAX).max(1);
        let line = averages.iter().step_by(step);
        let line: Vec<_> = line.map(|(at, value)| format!("{},{}", x(*at), y(*value))).collect();
        let dropped = match drawn.len() == points.len() {
            true => "",
            false => " Of each small part of the time only the extremes are drawn.",
        };
        Some(Self {
            title,
            summary: format!(
                "{} {of}, {} to {} µs. Line: moving average of {averaged}.{dropped}",
                grouped(points.len() as u64),
                us(low),
                us(high),
            ),
            dots: dots.iter().map(|(x, y)| format!("M{x} {y}h0")).collect(),
            average: line.join(" "),
            top: format!("{} µs", us(high)),
            bottom: format!("{} µs", us(low)),
            end: duration.to_string(),
        })
    }
}

/// The mean of each point and those before it, `averaged` in all, at its time; rounded down.
fn averages(points: &[(i64, i64)], averaged: usize) -> Vec<(i64, i64)> {
    let mean = |window: &[(i64, i64)]| {
        let sum: i128 = window.iter().map(|point| i128::from(point.1)).sum();
        i64::try_from(sum.div_euclid(window.len() as i128)).unwrap_or_default()
    };
    let windows = points.windows(averaged);
    windows.map(|window| (window[averaged - 1].0, mean(window))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_begins_with_the_hundredth_message_and_is_of_the_last_hundred() {
        let points: Vec<_> = (0..102).map(|at| (at * 10, at * 100)).collect();
        // Means of 0 to 99, 1 to 100, 2 to 101, in hundreds.
        assert_eq!(averages(&points, AVERAGED), [(990, 4_950), (1_000, 5_050), (1_010, 5_150)]);
        assert!(averages(&points[..99], AVERAGED).is_empty());
    }

    #[test]
    fn a_chart_has_the_slowest_at_the_top_and_the_fastest_at_the_bottom() {
        let points = [(0, 2_000), (500, 1_000), (1_000, 3_000)];
        let plotted = Plotted { of: "messages", averaged: AVERAGED };
        let chart = |points: &[(i64, i64)], ns| {
            Chart::new("c".to_owned(), plotted, points, Span::from_ns(ns))
        };
        let few = chart(&points, 1_000).expect("points");
        assert_eq!(few.dots, "M90 110h0M490 210h0M890 10h0");
        assert_eq!((few.top.as_str(), few.bottom.as_str()), ("3.00 µs", "1.00 µs"));
        assert!(chart(&[], 1_000).is_none());
        // A few million messages take no more than a screen can show.
        let many: Vec<_> = (0..1_000_000).map(|at| (at, at % 97)).collect();
        let chart = chart(&many, 1_000_000).expect("points");
        assert!(chart.dots.len() < 100_000, "{}", chart.dots.len());
        assert!(chart.average.len() < 20_000);
    }
}
