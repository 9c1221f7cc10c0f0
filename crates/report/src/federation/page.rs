//! The page on runs of a federation.

use super::{bound, judged, literal, shown, waited};
use crate::page::Page;
use crate::text::{counted, grouped};
use onbeat_measure::federation::{
    ConnectionResult, DeadlineJudgement, FederateResult, FederationResults, Judgement, Range,
    ReactionResult, WaitJudgement, Waits,
};
use onbeat_model::time::Span;
use serde::Serialize;

const PAGE: Page = Page {
    kicker: "federation, measured against bounded",
    body: include_str!("../../assets/federation.html"),
    notes: "Times are rounded down to three digits behind the point; the JSON and the CSV have \
        whole nanoseconds.",
    styles: &[include_str!("../../assets/federation.css")],
    script: "",
    has_charts: false,
};

/// The most chains that the page shows.
const CHAINS_MAX: usize = 1_000;
/// The most rows of each other table.
const ROWS_MAX: usize = 10_000;
/// The ends of the axis of a picture, in its own units.
const AXIS: (i64, i64) = (4, 416);

#[derive(Serialize)]
struct View {
    verdict: &'static str,
    class: &'static str,
    broken: Vec<String>,
    reasons: Vec<String>,
    about: Vec<(&'static str, String)>,
    chains: Vec<ChainView>,
    /// How many are not shown.
    chains_more: usize,
    federates: Vec<Row>,
    connections: Vec<Row>,
    reactions: Vec<Row>,
}

/// Cells of a table, and a verdict.
#[derive(Serialize)]
struct Row {
    cells: Vec<String>,
    verdict: String,
    class: &'static str,
}

#[derive(Serialize)]
struct ChainView {
    reactions: Vec<String>,
    /// Times, min, max, best, worst.
    cells: [String; 5],
    verdict: &'static str,
    class: &'static str,
    /// Why a bound is not known.
    reason: String,
    bar: Bar,
}

/// What was measured inside what bounds it, in units of the picture. What is not there is `None`.
#[derive(Serialize)]
struct Bar {
    measured: Option<(i64, i64)>,
    best: Option<i64>,
    worst: Option<i64>,
}

/// The page on what runs of a federation saw.
pub fn html(results: &FederationResults) -> String {
    let chains: Vec<_> = results.chains.iter().take(CHAINS_MAX).collect();
    let chains_more = results.chains.len() - chains.len();
    let chains = chains.into_iter().map(|chain| ChainView {
        reactions: chain.reactions.clone(),
        cells: cells(&chain.range),
        verdict: chain.range.verdict.as_str(),
        class: class(chain.range.verdict),
        reason: chain.range.unknown.clone().unwrap_or_default(),
        bar: bar(&chain.range),
    });
    let view = View {
        verdict: results.verdict.as_str(),
        class: class(results.verdict),
        broken: results.broken(),
        reasons: results.reasons().into_iter().map(str::to_owned).collect(),
        about: about(results),
        chains: chains.collect(),
        chains_more,
        federates: results.federates.iter().take(ROWS_MAX).map(federate).collect(),
        connections: results.connections.iter().take(ROWS_MAX).map(connection).collect(),
        reactions: results.reactions.iter().take(ROWS_MAX).map(reaction).collect(),
    };
    PAGE.render(&results.name, &view, &())
}

/// The style sheet's name for a verdict.
fn class(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Exceeded => "broken",
        Judgement::Within => "kept",
        Judgement::Unknown => "not-judged",
        Judgement::NotSeen => "no-promise",
    }
}

fn about(results: &FederationResults) -> Vec<(&'static str, String)> {
    let settings = &results.settings;
    let waits = match settings.maxwait {
        Waits::Model => "the model's",
        Waits::Computed => "the smallest that are safe",
    };
    let local = settings.local_ns.map_or("not known".to_owned(), literal);
    vec![
        ("Federates", counted(results.federates.len(), "federate", "federates")),
        ("Connections", counted(results.connections.len(), "connection", "connections")),
        ("Waits", waits.to_owned()),
        ("Duration", Span::from_ns(settings.duration_ns).to_string()),
        ("Runs", grouped(settings.runs.into())),
        ("Seed", settings.seed.to_string()),
        ("Messages within a station take at most", local),
        ("Handlers set ports", if settings.handlers_set { "yes" } else { "no" }.to_owned()),
        ("Events", grouped(results.events)),
    ]
}

fn cells(range: &Range) -> [String; 5] {
    [
        grouped(range.count),
        shown(range.min_ns),
        shown(range.max_ns),
        bound(range.best_ns),
        bound(range.worst_ns),
    ]
}

/// From zero, or what is below, to the greatest of all.
fn bar(range: &Range) -> Bar {
    let all = [range.min_ns, range.max_ns, range.best_ns, range.worst_ns];
    let least = all.into_iter().flatten().min().unwrap_or(0).min(0);
    let most = all.into_iter().flatten().max().unwrap_or(1).max(least.saturating_add(1));
    let place = |ns: i64| {
        let (part, whole) =
            (i128::from(ns) - i128::from(least), i128::from(most) - i128::from(least));
        AXIS.0 + (part * i128::from(AXIS.1 - AXIS.0) / whole) as i64
    };
    let measured = range.min_ns.zip(range.max_ns).map(|(min, max)| {
        let from = place(min);
        (from, (place(max) - from).max(2))
    });
    Bar { measured, best: range.best_ns.map(place), worst: range.worst_ns.map(place) }
}

fn federate(federate: &FederateResult) -> Row {
    let class = match federate.verdict {
        WaitJudgement::NoInputs => "no-promise",
        WaitJudgement::Safe | WaitJudgement::Forever => "kept",
        WaitJudgement::Broken | WaitJudgement::TooShort => "broken",
        WaitJudgement::Unknown => "not-judged",
    };
    Row {
        cells: vec![
            federate.name.clone(),
            federate.station.clone().unwrap_or_else(|| "–".to_owned()),
            waited(&federate.maxwait),
            federate.needed_ns.map_or_else(|| "unknown".to_owned(), literal),
            grouped(federate.received),
            grouped(federate.tardy),
            shown(federate.tardy_max_ns),
            grouped(federate.missed_deadlines),
            grouped(federate.ended_runs.into()),
        ],
        verdict: judged(federate),
        class,
    }
}

fn connection(connection: &ConnectionResult) -> Row {
    let arrival = connection.arrival.as_ref();
    let latency = connection.latency.as_ref();
    let bounded =
        |range: Option<&Range>| range.map_or_else(|| "–".to_owned(), |range| bound(range.worst_ns));
    Row {
        cells: vec![
            connection.name.clone(),
            grouped(connection.messages),
            grouped(connection.received),
            grouped(connection.lost),
            grouped(connection.late),
            grouped(connection.held),
            grouped(connection.tardy),
            shown(arrival.and_then(|range| range.max_ns)),
            bounded(arrival),
            shown(latency.and_then(|range| range.max_ns)),
            bounded(latency),
        ],
        verdict: connection.verdict.as_str().to_owned(),
        class: class(connection.verdict),
    }
}

fn reaction(reaction: &ReactionResult) -> Row {
    let deadline = match reaction.deadline {
        None => "–",
        Some(DeadlineJudgement::Met) => "met",
        Some(DeadlineJudgement::Broken) => "broken",
        Some(DeadlineJudgement::Missed) => "missed",
        Some(DeadlineJudgement::MayBeMissed) => "may be missed",
        Some(DeadlineJudgement::Unknown) => "unknown",
    };
    let [times, min, max, best, worst] = cells(&reaction.finish);
    let verdict = reaction.finish.verdict.max(reaction.release.verdict);
    Row {
        cells: vec![
            reaction.name.clone(),
            deadline.to_owned(),
            grouped(reaction.missed),
            times,
            shown(reaction.release.max_ns),
            bound(reaction.release.worst_ns),
            min,
            max,
            best,
            worst,
        ],
        verdict: verdict.as_str().to_owned(),
        class: class(verdict),
    }
}
