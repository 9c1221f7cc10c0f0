//! All ranges as CSV.

use crate::csv::quoted;
use onbeat_measure::federation::{FederationResults, Range};
use std::fmt::Write;

/// One line for each measured range (RFC 4180, with a header line): chains, releases and finishes
/// of reactions, sendings, arrivals and latencies of connections. Times are in nanoseconds; what is
/// not known or was not seen is empty.
pub fn csv(results: &FederationResults) -> String {
    let mut text = "what,name,count,min_ns,max_ns,best_ns,worst_ns,verdict\n".to_owned();
    let mut line = |what: &str, name: &str, range: &Range| {
        let _ = write!(text, "{what},{},{}", quoted(name), range.count);
        for value in [range.min_ns, range.max_ns, range.best_ns, range.worst_ns] {
            let _ = match value {
                Some(ns) => write!(text, ",{ns}"),
                None => write!(text, ","),
            };
        }
        let _ = writeln!(text, ",{}", range.verdict.as_str());
    };
    for chain in &results.chains {
        line("chain", &chain.reactions.join(" → "), &chain.range);
    }
    for reaction in &results.reactions {
        line("release", &reaction.name, &reaction.release);
        line("finish", &reaction.name, &reaction.finish);
    }
    for connection in &results.connections {
        line("sending", &connection.name, &connection.sent);
        for (what, range) in [("arrival", &connection.arrival), ("latency", &connection.latency)] {
            if let Some(range) = range {
                line(what, &connection.name, range);
            }
        }
    }
    text
}
