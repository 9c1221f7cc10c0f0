//! A system and its plan, for a terminal.

use crate::grid::{grid, right, ruled};
use crate::schedulers;
use comfy_table::Cell;
use onbeat_model::plan::{Bound, Plan};
use onbeat_model::system::{ChannelId, Class, NodeKind, PortId, System};
use onbeat_model::time::Span;
use std::fmt::Write;

/// One paragraph on a system that was found right.
pub fn summary(system: &System) -> String {
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
pub fn table(system: &System, plan: &Plan) -> String {
    let mut parts = Vec::new();
    if !system.channels.is_empty() || system.streams.is_empty() {
        parts.push(channels(system, plan));
    }
    if !system.streams.is_empty() {
        parts.push(streams(system, plan));
    }
    parts.extend(windows(system, plan));
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
    parts.extend(schedulers::text(system, plan));
    parts.join("\n\n")
}

/// How many windows are shown.
const WINDOWS_MAX: usize = 60;

/// When frames of scheduled channels leave, if there are any.
fn windows(system: &System, plan: &Plan) -> Option<String> {
    let headings = ["channel", "each", "write by", "launch", "port", "opens", "for", "of cycle"];
    let mut grid = grid(&headings);
    let mut more = 0usize;
    for (at, (channel, planned)) in system.channels.iter().zip(&plan.channels).enumerate() {
        let Some(launch) = &planned.launch else { continue };
        let write = plan.phase(system, ChannelId(at as u32));
        for (number, window) in launch.windows.iter().enumerate() {
            if grid.row_count() == WINDOWS_MAX {
                more += 1;
                continue;
            }
            let whose = match number {
                0 => [
                    channel.name.clone(),
                    channel.interval.to_string(),
                    write.to_string(),
                    launch.at.to_string(),
                ],
                _ => Default::default(),
            };
            let gates = plan.ports[window.port.index()].settings.gates.first();
            let cycle = gates.map_or(Span::ZERO, |list| list.cycle);
            let times = [window.start, window.span, cycle].map(|span| span.to_string());
            let [opens, span, cycle] = times;
            grid.add_row(whose.into_iter().chain([
                system.port_label(window.port),
                opens,
                span,
                cycle,
            ]));
        }
    }
    let more = if more > 0 { format!("\n{more} more are in the JSON.") } else { String::new() };
    (grid.row_count() > 0).then(|| format!("Windows of scheduled channels\n{}{more}", ruled(&grid)))
}

/// How many scheduled streams are named.
const SCHEDULED_MAX: usize = 8;

/// Whose bounds hold for their described phases only, if any do.
fn scheduled(system: &System, plan: &Plan) -> Option<String> {
    let both = system.streams.iter().zip(&plan.streams);
    let names: Vec<_> =
        both.filter(|(_, planned)| planned.phase_specific).map(|(s, _)| s.name.as_str()).collect();
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
fn reasons<'a>(reasons: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> String {
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
        let mut seen = None;
        for (at, path) in planned.paths_to_listeners(channel.listeners.len()) {
            let to = &system.node(channel.listeners[at]).name;
            if seen.replace(at) == Some(at) {
                // A further path of a replicated channel.
                let [name, to, rates, bound] = [(); 4].map(|()| String::new());
                grid.add_row([name, to, route(system, path), rates.clone(), rates, bound]);
                continue;
            }
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

/// A bound as the sum of its terms. Begins with an empty line.
pub fn sum(name: &str, to: &str, bound: &Bound) -> String {
    let mut text = format!("\n{name} at {to}: {} at most\n", bound.total());
    for term in &bound.terms {
        let _ = writeln!(text, "  {:>12}  {}", term.span.to_string(), term.what);
    }
    text
}

/// One listener of a channel or a stream, and its bound.
#[derive(Clone, Copy, Debug)]
pub struct EndpointBound<'a> {
    /// The channel or stream.
    pub flow: &'a str,
    /// The host that listens.
    pub listener: &'a str,
    /// The worst case; none without one.
    pub bound: Option<&'a Bound>,
    /// Why it has no bound, for a person.
    pub no_bound: Option<&'a str>,
}

/// The worst case of every channel and stream, and of every queue. `cpu` is the processor time that
/// finding them took.
pub fn bounds(system: &System, plan: &Plan, ends: &[EndpointBound<'_>], cpu: Span) -> String {
    let mut flows = grid(&["flow", "listener", "bound", "best", "jitter", "largest term"]);
    for end in ends {
        let numbers = match end.bound {
            None => ["no bound".to_owned(), "-".to_owned(), "-".to_owned()],
            Some(bound) => {
                [bound.total(), bound.best, bound.total() - bound.best].map(|s| s.to_string())
            }
        };
        let term = end.bound.and_then(Bound::dominating).map(|t| format!("{} {}", t.span, t.what));
        let mut cells = vec![Cell::new(end.flow), Cell::new(end.listener)];
        cells.extend(numbers.map(right));
        cells.push(Cell::new(term.unwrap_or_else(|| "-".to_owned())));
        flows.add_row(cells);
    }
    let mut text = ruled(&flows);
    let reasons = ends.iter().filter_map(|end| Some((end.flow, end.listener, end.no_bound?)));
    text += &self::reasons(reasons);
    if let Some(scheduled) = scheduled(system, plan) {
        text += &format!("\n\n{scheduled}");
    }
    let mut waiting = grid(&["port", "queue", "frames", "octets"]);
    for (port, queue, frames, octets) in queues(system, plan) {
        let numbers = [queue.to_string(), frames.to_string(), octets.to_string()];
        waiting.add_row([Cell::new(port)].into_iter().chain(numbers.map(right)));
    }
    if waiting.row_count() > 0 {
        text += &format!("\n\nWhat may wait at once\n{}", ruled(&waiting));
    }
    let count = ends.iter().filter(|end| end.bound.is_some()).count();
    text + &format!("\n\n{count} of {} bounded in {cpu} of processor time.", ends.len())
}

/// The queues of all ports that have a bound and in which anything may wait: port, queue, frames,
/// octets.
pub fn queues<'a>(
    system: &'a System,
    plan: &'a Plan,
) -> impl Iterator<Item = (String, usize, u64, u64)> + 'a {
    (0..).map(PortId).zip(&plan.backlogs).flat_map(move |(id, port)| {
        let bounded = port.iter().enumerate().filter_map(|(queue, b)| b.map(|b| (queue, b)));
        let bounded = bounded.filter(|(_, b)| b.frames > 0);
        bounded.map(move |(queue, b)| (system.port_label(id), queue, b.frames, b.octets))
    })
}
