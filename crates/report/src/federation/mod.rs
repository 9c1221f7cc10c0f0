//! What runs of a federation's skeleton saw beside its bounds: tables for a terminal, a page, and
//! all ranges as CSV.

mod csv;
mod page;
mod table;

pub use csv::csv;
pub use page::html;
pub use table::table;

use onbeat_measure::federation::{FederateResult, Judgement, Wait, WaitJudgement};
use onbeat_model::time::Span;

/// A time as the language writes it.
fn literal(ns: i64) -> String {
    match ns {
        0 => "0".to_owned(),
        ns if ns % 1_000_000 == 0 => format!("{} ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{} us", ns / 1_000),
        ns => format!("{ns} ns"),
    }
}

/// A federate's wait as the language writes it.
fn waited(wait: &Wait) -> String {
    match wait {
        Wait::Ns(ns) => literal(*ns),
        Wait::Word(word) => word.clone(),
    }
}

fn shown(ns: Option<i64>) -> String {
    ns.map_or_else(|| "–".to_owned(), |ns| Span::from_ns(ns).to_string())
}

/// A bound, which may be unknown.
fn bound(ns: Option<i64>) -> String {
    ns.map_or_else(|| "unknown".to_owned(), |ns| Span::from_ns(ns).to_string())
}

/// What to think of a federate's wait.
fn judged(federate: &FederateResult) -> String {
    match (federate.verdict, federate.short_ns) {
        (WaitJudgement::TooShort, Some(by)) => format!("TOO SHORT by {}", Span::from_ns(by)),
        (WaitJudgement::TooShort, None) => "TOO SHORT".to_owned(),
        (WaitJudgement::Broken, _) => "BROKEN".to_owned(),
        (verdict, _) => verdict.as_str().to_owned(),
    }
}

/// What a terminal shows of a comparison.
fn verdict(judgement: Judgement) -> String {
    match judgement {
        Judgement::Exceeded => "EXCEEDED".to_owned(),
        other => other.as_str().to_owned(),
    }
}
