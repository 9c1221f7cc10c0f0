//! What a terminal shows.

use super::{bound, judged, shown, verdict, waited};
use crate::grid::{grid, right, ruled};
use crate::text::grouped;
use comfy_table::Cell;
use onbeat_measure::federation::{FederationResults, Judgement, WaitJudgement, WaitSource};
use onbeat_model::time::Span;
use std::cmp::Reverse;

/// The most rows of each table.
const ROWS_MAX: usize = 40;

/// Chains, federates, connections and the sum as text without a line feed at its end. Where there
/// are more than 40 rows, those beyond their bounds come first and the rest is left to the JSON.
pub fn table(results: &FederationResults) -> String {
    let mut parts = vec![chains(results), federates(results)];
    parts.extend((!results.connections.is_empty()).then(|| connections(results)));
    parts.extend(results.reasons().into_iter().map(|reason| format!("unknown: {reason}")));
    parts.push(summary(results));
    parts.join("\n\n")
}

/// The rows that are shown, and a line about those that are not.
fn most<T, K: Ord>(all: &[T], key: impl Fn(&T) -> K) -> (Vec<&T>, String) {
    let mut rows: Vec<&T> = all.iter().collect();
    if rows.len() <= ROWS_MAX {
        return (rows, String::new());
    }
    rows.sort_by_key(|row| Reverse(key(row)));
    rows.truncate(ROWS_MAX);
    (rows, format!("\n{ROWS_MAX} of {}: the worst first", grouped(all.len() as u64)))
}

fn count(count: u64) -> Cell {
    right(grouped(count))
}

fn chains(results: &FederationResults) -> String {
    let mut table = grid(&["chain", "times", "min", "max", "best", "worst", "verdict"]);
    let (rows, more) = most(&results.chains, |chain| chain.range.verdict);
    for chain in rows {
        let range = &chain.range;
        table.add_row([
            Cell::new(chain.reactions.join(" → ")),
            count(range.count),
            right(shown(range.min_ns)),
            right(shown(range.max_ns)),
            right(bound(range.best_ns)),
            right(bound(range.worst_ns)),
            Cell::new(verdict(range.verdict)),
        ]);
    }
    let cut = if results.more_chains { "\nThere are more chains than these." } else { "" };
    format!("{}{more}{cut}\nmin and max: measured; best and worst: bounds", ruled(&table))
}

fn federates(results: &FederationResults) -> String {
    let headings =
        ["federate", "station", "@maxwait", "from", "received", "tardy", "missed", "wait"];
    let mut table = grid(&headings);
    let is_wrong = |verdict| !matches!(verdict, WaitJudgement::NoInputs | WaitJudgement::Safe);
    let (rows, more) =
        most(&results.federates, |one| (one.tardy + one.missed_deadlines, is_wrong(one.verdict)));
    for federate in rows {
        let is_waiting = federate.verdict != WaitJudgement::NoInputs;
        let from = match federate.maxwait_from {
            WaitSource::Model => "model",
            WaitSource::Computed => "computed",
            WaitSource::Runtime => "runtime",
        };
        let or = |text: String| if is_waiting { text } else { "–".to_owned() };
        table.add_row([
            Cell::new(&federate.name),
            Cell::new(federate.station.as_deref().unwrap_or("–")),
            right(or(waited(&federate.maxwait))),
            Cell::new(or(from.to_owned())),
            count(federate.received),
            count(federate.tardy),
            count(federate.missed_deadlines),
            Cell::new(judged(federate)),
        ]);
    }
    format!("{}{more}", ruled(&table))
}

fn connections(results: &FederationResults) -> String {
    let headings =
        ["connection", "messages", "lost", "late", "held", "arrives by", "bound", "verdict"];
    let mut table = grid(&headings);
    let (rows, more) = most(&results.connections, |connection| connection.verdict);
    for connection in rows {
        let arrival = connection.arrival.as_ref();
        table.add_row([
            Cell::new(&connection.name),
            count(connection.messages),
            count(connection.lost),
            count(connection.late),
            count(connection.held),
            right(shown(arrival.and_then(|range| range.max_ns))),
            right(arrival.map_or_else(|| "–".to_owned(), |range| bound(range.worst_ns))),
            Cell::new(verdict(connection.verdict)),
        ]);
    }
    format!("{}{more}\nArrivals after the tag, by the reader's clock.", ruled(&table))
}

fn summary(results: &FederationResults) -> String {
    let settings = &results.settings;
    let duration = Span::from_ns(settings.duration_ns);
    let times = match settings.runs {
        1 => "once".to_owned(),
        many => format!("{} times", grouped(many.into())),
    };
    let judged = match results.verdict {
        Judgement::Exceeded => match results.broken().len() {
            1 => "1 finding: it is on standard error.".to_owned(),
            many => format!("{many} findings: they are on standard error."),
        },
        Judgement::Unknown => "All known bounds hold; others are not known.".to_owned(),
        Judgement::Within | Judgement::NotSeen => "All bounds hold.".to_owned(),
    };
    let cut = match results.cut_runs {
        0 => String::new(),
        cut => format!(" In {} of them too much happened: they ended early.", grouped(cut.into())),
    };
    format!("{duration} executed {times}: {} events.{cut} {judged}", grouped(results.events))
}
