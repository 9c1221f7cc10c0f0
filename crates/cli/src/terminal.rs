//! What a person sees in the terminal.

use comfy_table::{Cell, CellAlignment};
pub(crate) use onbeat_measure::grid::{grid, ruled};
use onbeat_measure::{Ended, HEADINGS, Results, RowKind, RunResult, table};
use onbeat_model::plan::{Bound, Plan};
use onbeat_model::system::{Class, NodeKind, PortId, System, TimeMode};
use onbeat_model::time::Span;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where [`HEADINGS`] has the engine.
const TIME: usize = 1;

/// Whether something did not get to standard output.
static UNPRINTED: AtomicBool = AtomicBool::new(false);

/// Whether all that was to be printed was.
pub(crate) fn is_printed() -> bool {
    !UNPRINTED.load(Ordering::Relaxed)
}

/// Prints on standard output. A reader that has gone away, as `head` does, is no error.
pub(crate) fn print(text: impl std::fmt::Display) {
    use std::io::Write;
    let mut output = std::io::stdout().lock();
    if let Err(error) = writeln!(output, "{}", harmless(&text.to_string()))
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        say(format_args!("onbeat: standard output: {error}"));
        UNPRINTED.store(true, Ordering::Relaxed);
    }
}

/// Prints a line on standard error. There is nobody to tell if that fails.
pub(crate) fn say(text: impl std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(&text.to_string()));
}

/// A text in which nothing moves the cursor, rings, writes titles or turns the writing round: names
/// and lines of files, and what programs say, may be anybody's. Colours stay.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{061c}' | '\u{2066}'..='\u{2069}');
        c.is_control() && c != '\n' && c != '\t' || turns
    };
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_colour = c == '\x1b' && {
            let rest = text[at + 1..].strip_prefix('[').unwrap_or("");
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
        };
        shown.push(if is_bad(c) && !is_colour { '\u{fffd}' } else { c });
    }
    Cow::Owned(shown)
}

/// One paragraph on a system that was found right.
pub(crate) fn summary(system: &System) -> String {
    let hosts = system.nodes.iter().filter(|n| matches!(n.kind, NodeKind::Host(_))).count();
    let parts = [
        (hosts, "host"),
        (system.nodes.len() - hosts, "bridge"),
        (system.links.len(), "link"),
        (system.channels.len(), "channel"),
        (system.streams.len(), "stream"),
        (system.programs.len(), "program"),
        (system.noise.len(), "noise source"),
        (system.scenarios.len(), "scenario"),
    ];
    let count = |(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!("{}: fine. {}.", system.name, parts.map(count).join(", "))
}

/// Routes, bounds and reservations.
pub(crate) fn plan(system: &System, plan: &Plan) -> String {
    let mut parts = Vec::new();
    if !system.channels.is_empty() || system.streams.is_empty() {
        parts.push(channels(system, plan));
    }
    if !system.streams.is_empty() {
        parts.push(streams(system, plan));
    }
    parts.extend(scheduled(system, plan));
    for (chain, bound) in system.chains.iter().zip(&plan.chains) {
        let bound = bound.map_or("no bound".to_owned(), |b| format!("{b} at most"));
        parts.push(format!("chain {}: {bound}, deadline {}", chain.name, chain.deadline));
    }
    let mut ports = grid(&["port", "rate", "class A", "class B", "streams A, B"]);
    for (at, port) in plan.ports.iter().enumerate() {
        if port.class_a_streams + port.class_b_streams > 0 {
            let id = PortId(at as u32);
            ports.add_row([
                system.port_label(id),
                system.link_of(id).rate.to_string(),
                port.idle_slope(Class::A).to_string(),
                port.idle_slope(Class::B).to_string(),
                format!("{}, {}", port.class_a_streams, port.class_b_streams),
            ]);
        }
    }
    if ports.row_count() > 0 {
        parts.push(format!("idleSlope per port\n{}", ruled(&ports)));
    }
    parts.join("\n\n")
}

/// How many scheduled streams are named.
const SCHEDULED_MAX: usize = 8;

/// Whose bounds hold for their described phases only, if any do.
pub(crate) fn scheduled(system: &System, plan: &Plan) -> Option<String> {
    let both = system.streams.iter().zip(&plan.streams);
    let names: Vec<_> =
        both.filter(|(_, planned)| planned.scheduled).map(|(s, _)| s.name.as_str()).collect();
    let more = match names.len().saturating_sub(SCHEDULED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = names.iter().take(SCHEDULED_MAX).copied().collect::<Vec<_>>().join(", ");
    (!names.is_empty())
        .then(|| format!("Scheduled, with bounds for their phases as described: {named}{more}"))
}

/// How many flows without a bound are explained one by one.
const REASONS_MAX: usize = 20;

/// Why flows have no bound: name, listener and reason of each. Begins with an empty line, if there
/// is any.
pub(crate) fn reasons<'a>(reasons: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let lines: Vec<_> =
        reasons.map(|(flow, to, why)| format!("\n  {flow} to {to}: {why}")).collect();
    if lines.is_empty() {
        return String::new();
    }
    let more = match lines.len().saturating_sub(REASONS_MAX) {
        0 => String::new(),
        more => format!("\n  and {more} more, in the JSON"),
    };
    format!("\n\nNo bound:{}{more}", lines[..lines.len().min(REASONS_MAX)].concat())
}

fn channels(system: &System, plan: &Plan) -> String {
    let mut grid = grid(&["channel", "listener", "route", "true rate", "reserved", "bound"]);
    let mut terms = String::new();
    for (channel, planned) in system.channels.iter().zip(&plan.channels) {
        for (at, (listener, path)) in channel.listeners.iter().zip(&planned.paths).enumerate() {
            let to = &system.node(*listener).name;
            let bound = planned.bounds.get(at);
            grid.add_row([
                channel.name.clone(),
                to.clone(),
                route(system, path),
                planned.true_rate.to_string(),
                planned.reserved_rate.to_string(),
                bound.map_or("no promise".to_owned(), |b| b.total().to_string()),
            ]);
            terms.extend(bound.map(|bound| sum(&channel.name, to, bound)));
        }
    }
    format!("{}\n{terms}", ruled(&grid)).trim_end().to_owned()
}

/// A stream that is replicated has a line for each of its ways.
fn streams(system: &System, plan: &Plan) -> String {
    let mut grid = grid(&["stream", "listener", "class", "route", "deadline", "bound"]);
    let mut terms = String::new();
    for (stream, planned) in system.streams.iter().zip(&plan.streams) {
        for (at, (listener, paths)) in stream.listeners.iter().zip(&planned.paths).enumerate() {
            let to = &system.node(*listener).name;
            let bound = planned.bounds.get(at).and_then(Option::as_ref);
            let mut first = [
                stream.name.clone(),
                to.clone(),
                stream.traffic_class.to_string(),
                stream.deadline.map_or("none".to_owned(), |d| d.to_string()),
                bound.map_or("no bound".to_owned(), |b| b.total().to_string()),
            ];
            for path in paths {
                let [stream, to, class, deadline, bound] = std::mem::take(&mut first);
                grid.add_row([stream, to, class, route(system, path), deadline, bound]);
            }
            terms.extend(bound.map(|bound| sum(&stream.name, to, bound)));
        }
    }
    let text = format!("{}\n{terms}", ruled(&grid));
    text.trim_end().to_owned() + &reasons(unbounded(system, plan))
}

/// The streams without a bound: name, listener and reason.
fn unbounded<'a>(
    system: &'a System,
    plan: &'a Plan,
) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    let both = system.streams.iter().zip(&plan.streams);
    both.flat_map(|(stream, planned)| {
        stream.listeners.iter().zip(&planned.unbounded).filter_map(|(to, reason)| {
            let why = reason.as_ref()?.why.as_str();
            Some((stream.name.as_str(), system.node(*to).name.as_str(), why))
        })
    })
}

fn route(system: &System, path: &[PortId]) -> String {
    path.iter().map(|p| system.port_label(*p)).collect::<Vec<_>>().join(" → ")
}

/// A bound as the sum of its terms.
fn sum(name: &str, to: &str, bound: &Bound) -> String {
    let mut text = format!("\n{name} at {to}: {} at most\n", bound.total());
    for term in &bound.terms {
        let _ = writeln!(text, "  {:>12}  {}", term.span.to_string(), term.what);
    }
    text
}

/// What the runs of a system without channels were, where there is nothing to measure.
pub(crate) fn programs(system: &System, results: &Results) -> String {
    let names: Vec<_> = system.programs.iter().map(|p| format!("`{}`", p.name)).collect();
    let names = if names.is_empty() { "no program".to_owned() } else { names.join(", ") };
    let of_run = |run: &RunResult| {
        let scenario = match run.scenario.is_empty() {
            true => String::new(),
            false => format!("{}, ", run.scenario),
        };
        let time = match run.time {
            TimeMode::Virtual => "virtual",
            TimeMode::Real => "real",
        };
        let (ran, how) = match &run.ended {
            Ended::Complete => (Span::from_ns(run.duration_ns), "to the end, all ended well"),
            Ended::Early { at_ns, .. } => (Span::from_ns(*at_ns), "ended early"),
        };
        format!("{scenario}{names}: {ran} of {time} time, {how}")
    };
    results.runs.iter().map(of_run).collect::<Vec<_>>().join("\n")
}

/// What the runs measured, beside what was promised and what others published. The sources of the
/// published figures stand below the table, which keeps it narrow.
pub(crate) fn results(system: &System, results: &Results) -> String {
    let mut headings = HEADINGS.to_vec();
    headings.remove(TIME);
    let mut grid = grid(&headings);
    let mut sources = String::new();
    let mut published = 0;
    for row in table(system, &results.runs) {
        let mut cells = row.cells.to_vec();
        let time = cells.remove(TIME);
        match row.kind {
            RowKind::Measured => cells[0] = format!("{}, {time}", cells[0]),
            RowKind::Reference => {
                published += 1;
                let source = cells[0].trim_start_matches(['↳', ' ']);
                let _ = writeln!(sources, "[{published}] {source}");
                cells[0] = format!("  published [{published}]");
            }
        }
        let cells = cells.into_iter().enumerate().map(|(column, text)| {
            let side =
                if (2..=8).contains(&column) { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(side)
        });
        grid.add_row(cells);
    }
    format!("{}\n{sources}", ruled(&grid)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_others_wrote_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\tb\nü \x1b[1;31mred\x1b[0m"), "a\tb\nü \x1b[1;31mred\x1b[0m");
        assert_eq!(harmless("\x1b]0;title\x07"), "\u{fffd}]0;title\u{fffd}");
        assert_eq!(harmless("\x1b[2J\x1b[31"), "\u{fffd}[2J\u{fffd}[31");
        assert_eq!(harmless("x\rok \u{9b}2J \u{202e}txt"), "x\u{fffd}ok \u{fffd}2J \u{fffd}txt");
    }
}
