//! Chains: what is asked of each, what is known, and which term is the largest.

use super::words;
use crate::text::percent;
use onbeat_model::graph::{Graph, Interval};
use onbeat_model::time::Span;
use onbeat_model::timing::Chain;
use serde::Serialize;

/// A chain in words.
#[derive(Debug, Serialize)]
pub(super) struct ChainView {
    /// Its name.
    pub(super) name: String,
    /// Its channels, in order.
    pub(super) channels: Vec<String>,
    /// Latency, data age, reaction time.
    pub(super) judged: [Judged; 3],
    /// All of them together: for the style sheet, and as text.
    pub(super) verdict: (&'static str, &'static str),
    /// The worst latency as a sum.
    pub(super) terms: Vec<TermView>,
    /// The sum.
    pub(super) total: String,
}

/// One quantity and what is asked of it.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    /// What is known.
    pub(super) found: String,
    /// The most that is allowed; empty if nothing is asked.
    pub(super) asked: String,
    /// Whether that is kept, if anything is asked.
    pub(super) is_kept: Option<bool>,
}

/// A term of a chain's latency.
#[derive(Debug, Serialize)]
pub(super) struct TermView {
    /// What takes the time.
    pub(super) what: String,
    /// How long.
    pub(super) span: String,
    /// Of all.
    pub(super) share: String,
    /// In thousandths of all, for a bar.
    pub(super) mille: i64,
    /// Whether none is larger.
    pub(super) dominates: bool,
}

impl ChainView {
    /// The largest term.
    pub(super) fn dominating(&self) -> Option<&TermView> {
        self.terms.iter().find(|term| term.dominates)
    }
}

/// Puts a chain into words.
pub(super) fn chain_view(graph: &Graph, chain: &Chain) -> ChainView {
    let time = &chain.time;
    let judged = [
        judged(time.latency, chain.deadline),
        judged(time.age.map(Interval::exactly), chain.age),
        judged(time.reaction.map(Interval::exactly), chain.reaction),
    ];
    let verdict = match judged.iter().filter_map(|one| one.is_kept).min() {
        None => ("no-promise", "nothing asked"),
        Some(true) => ("kept", "kept"),
        Some(false) => ("broken", "not kept"),
    };
    let sum: i64 = time.terms.iter().map(|term| term.span.as_ns().max(0)).sum();
    let largest = time.terms.iter().rev().max_by_key(|term| term.span);
    let term = |term: &onbeat_model::plan::BoundTerm| {
        let part = term.span.as_ns().max(0);
        TermView {
            what: term.what.clone(),
            span: words::time(term.span),
            share: percent(part as u64, sum as u64),
            mille: (i128::from(part) * 1000 / i128::from(sum.max(1))) as i64,
            dominates: largest.is_some_and(|largest| std::ptr::eq(largest, term)),
        }
    };
    ChainView {
        name: chain.name.clone(),
        channels: chain.channels.iter().map(|at| graph.channels[*at].name.clone()).collect(),
        judged,
        verdict,
        terms: time.terms.iter().map(term).collect(),
        total: words::time(Span::from_ns(sum)),
    }
}

fn judged(found: Option<Interval>, asked: Option<Span>) -> Judged {
    let is_kept = asked.map(|most| found.and_then(|f| f.hi).is_some_and(|worst| worst <= most));
    let found = found.map_or("no bound".to_owned(), |found| match found.hi {
        Some(hi) if hi == found.lo => words::time(hi),
        Some(hi) => format!("{} – {}", words::time(found.lo), words::time(hi)),
        None => "no bound".to_owned(),
    });
    Judged { found, asked: asked.map_or(String::new(), words::time), is_kept }
}
