//! What nodes, places and times are called, and what the analysis says, in words.

use crate::text::counted;
use onbeat_model::graph::{
    ChannelKind, Expression, Graph, Interval, NodeKind, PointKind, Task, TaskNode, Unary,
};
use onbeat_model::time::Span;
use onbeat_model::timing::{
    Cause, CauseKind, Component, Composability, Course, Hazard, LockCycle, Miss, Row, Timing,
    TimingReport,
};
use std::collections::BTreeMap;

/// What stands for a time without a bound.
const ENDLESS: &str = "∞";

/// A time with the largest unit that shows it exactly with three decimals, `12.304 µs`, `2 ms`;
/// with all decimals where that were a large number: `12.851068672 s`.
pub(super) fn time(span: Span) -> String {
    const LARGE: u64 = 10_000;
    let ns = span.as_ns().unsigned_abs();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    let mut fitting = units.into_iter().filter(|(unit, _)| ns >= *unit);
    let largest = fitting.clone().next().unwrap_or((1, "ns"));
    let is_short =
        |(unit, _): &(u64, _)| (ns % unit).is_multiple_of(unit / 1_000) && ns / unit < LARGE;
    let (unit, name) = fitting.find(is_short).unwrap_or(largest);
    let (unit, name) = if ns == 0 { (1_000_000, "ms") } else { (unit, name) };
    format!("{}{} {name}", sign(span), decimal(ns / unit, ns % unit, unit))
}

/// A time in milliseconds, exactly and without the unit: `10`, `0.250001`.
pub(super) fn ms(span: Span) -> String {
    let ns = span.as_ns().unsigned_abs();
    format!("{}{}", sign(span), decimal(ns / 1_000_000, ns % 1_000_000, 1_000_000))
}

const fn sign(span: Span) -> &'static str {
    if span.as_ns() < 0 { "-" } else { "" }
}

/// A number and what is behind its point, `rest` of `unit`, without zeros at the end.
fn decimal(whole: u64, rest: u64, unit: u64) -> String {
    let digits = format!("{:0width$}", rest, width = unit.ilog10() as usize);
    match digits.trim_end_matches('0') {
        "" => whole.to_string(),
        digits => format!("{whole}.{digits}"),
    }
}

/// An interval in milliseconds: `10`, `10…12`, `10…∞`.
pub(super) fn interval(interval: Interval) -> String {
    match interval.hi {
        Some(hi) if hi == interval.lo => ms(hi),
        Some(hi) => format!("{}…{}", ms(interval.lo), ms(hi)),
        None => format!("{}…{ENDLESS}", ms(interval.lo)),
    }
}

/// An interval with its units.
pub(super) fn times(interval: Interval) -> String {
    match interval.hi {
        Some(hi) if hi == interval.lo => time(hi),
        Some(hi) => format!("{} to {}", time(interval.lo), time(hi)),
        None => format!("{} or later, without a bound", time(interval.lo)),
    }
}

/// A list as in a sentence: `a`, `a and b`, `a, b and c`.
pub(super) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The letter that the paper has for a node; other nodes have none.
pub(super) const fn letter(kind: &NodeKind) -> Option<char> {
    match kind {
        NodeKind::Point { .. } => Some('p'),
        NodeKind::Fragment { .. } => Some('f'),
        NodeKind::Write { .. } | NodeKind::Read { .. } => Some('c'),
        _ => None,
    }
}

/// The channel that a node is an end of.
pub(super) const fn channel(kind: &NodeKind) -> Option<usize> {
    match kind {
        NodeKind::Write { channel, .. } | NodeKind::Read { channel, .. } => Some(*channel),
        _ => None,
    }
}

/// What a timing point is called.
pub(super) const fn point_kind(kind: PointKind) -> &'static str {
    match kind {
        PointKind::Soft => "soft",
        PointKind::Firm => "firm",
        PointKind::Hard => "hard",
    }
}

/// A delay; one that is not constant has no number here.
fn delay(expression: &Expression) -> String {
    match expression {
        Expression::Constant(ns) => time(Span::from_ns(*ns)),
        Expression::Unknown => "unknown".to_owned(),
        _ => "varying".to_owned(),
    }
}

/// What stands beside a node in the picture.
pub(super) fn label(graph: &Graph, node: &TaskNode) -> String {
    let named = |channel: usize| graph.channels[channel].name.as_str();
    let waits = |waits: bool| if waits { ", waits" } else { "" };
    match &node.kind {
        NodeKind::Start | NodeKind::Set { .. } | NodeKind::Branch(_) | NodeKind::Any => {
            String::new()
        }
        NodeKind::End => "end".to_owned(),
        NodeKind::Point { kind, period, deadline } => match deadline {
            Some(deadline) if deadline != period => {
                format!("{} {}, by {}", point_kind(*kind), delay(period), delay(deadline))
            }
            _ => format!("{} {}", point_kind(*kind), delay(period)),
        },
        NodeKind::Fragment { execution } if *execution == Interval::ZERO => String::new(),
        NodeKind::Fragment { execution } => format!("{} ms", interval(*execution)),
        NodeKind::Write { channel, waits: w } => format!("→ {}{}", named(*channel), waits(*w)),
        NodeKind::Read { channel, waits: w } => format!("← {}{}", named(*channel), waits(*w)),
        NodeKind::Gettime => "gettime".to_owned(),
        NodeKind::Skip => "skipdelay".to_owned(),
        NodeKind::Held => "something is held".to_owned(),
        NodeKind::Run { task } => format!("starts {}", graph.tasks[*task].name),
        NodeKind::Lock(resource) => format!("locks {}", graph.resources[*resource]),
        NodeKind::Take(resource) => format!("takes {}", graph.resources[*resource]),
        NodeKind::Unlock(resource) => format!("unlocks {}", graph.resources[*resource]),
    }
}

/// What a node is, as a phrase.
pub(super) fn phrase(graph: &Graph, node: &TaskNode) -> String {
    let of = |at: usize| {
        let channel = &graph.channels[at];
        format!("{} {}", kind_of_channel(&channel.kind), channel.name)
    };
    let waits = |waits: bool| if waits { " and waits for the fixed delay" } else { "" };
    match &node.kind {
        NodeKind::Start => "the task begins".to_owned(),
        NodeKind::End => "the task ends".to_owned(),
        NodeKind::Point { kind, period, deadline } => {
            let deadline = deadline.as_ref().map(|d| format!(", deadline {}", delay(d)));
            let deadline = deadline.unwrap_or_default();
            format!("{} timing point, period {}{deadline}", point_kind(*kind), delay(period))
        }
        NodeKind::Fragment { .. } => "code".to_owned(),
        NodeKind::Write { channel, waits: w } => format!("writes {}{}", of(*channel), waits(*w)),
        NodeKind::Read { channel, waits: w } => format!("reads {}{}", of(*channel), waits(*w)),
        NodeKind::Set { register, value } => format!("r{register} = {}", expression(value)),
        NodeKind::Branch(condition) => format!("if ({})", expression(condition)),
        NodeKind::Any => "ways meet or part".to_owned(),
        _ => label(graph, node),
    }
}

/// What a channel is called.
pub(super) fn kind_of_channel(kind: &ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Fifo { .. } => "fifochannel",
        ChannelKind::Named => "channel",
        ChannelKind::Network(_) if is_best_effort(kind) => "best-effort channel",
        ChannelKind::Network(_) => "network channel",
    }
}

/// Whether some reader has no latency bound.
pub(super) fn is_best_effort(kind: &ChannelKind) -> bool {
    let ChannelKind::Network(network) = kind else { return false };
    network.latencies.iter().any(|(_, latency)| latency.hi.is_none())
}

/// An expression in C, registers as `r0`. Which values its type can hold is not said.
pub(super) fn expression(of: &Expression) -> String {
    let inner = |of: &Expression| match plain(of) {
        Expression::Unary(..) | Expression::Binary(..) => format!("({})", expression(of)),
        _ => expression(of),
    };
    match plain(of) {
        Expression::Constant(value) => value.to_string(),
        Expression::Register(register) => format!("r{register}"),
        Expression::Unknown => "?".to_owned(),
        Expression::Unary(operation, of) => {
            format!("{}{}", operation.operator(), inner(of))
        }
        Expression::Binary(operation, a, b) => {
            format!("{} {} {}", inner(a), operation.operator(), inner(b))
        }
    }
}

/// An expression without its range.
fn plain(of: &Expression) -> &Expression {
    match of {
        Expression::Unary(Unary::Within { .. } | Unary::Wrap { .. }, inner) => plain(inner),
        _ => of,
    }
}

/// Where a node is: `sensor.c:5`.
pub(super) fn place(task: &Task, node: usize) -> String {
    match task.nodes[node].place.as_str() {
        "" => format!("the start of {}", task.name),
        _ => task.label(node),
    }
}

/// Where a row's node is.
pub(super) fn place_of(graph: &Graph, row: &Row) -> String {
    place(&graph.tasks[row.task], row.node)
}

/// A path in words: `sensor.c:5 → status → processor.c:12 → processor.c:13`. Between a writing and
/// a reading end stands the channel; nodes of no consequence are left out.
pub(super) fn path(graph: &Graph, timing: &Timing, rows: &[usize]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut written = None;
    for (at, row) in rows.iter().enumerate() {
        let row = &timing.rows[*row];
        let node = &graph.tasks[row.task].nodes[row.node];
        let is_end = at == 0 || at + 1 == rows.len();
        if !is_end && letter(&node.kind).is_none() {
            continue;
        }
        if let (NodeKind::Read { channel, .. }, true) = (&node.kind, written == channel(&node.kind))
        {
            parts.push(graph.channels[*channel].name.clone());
        }
        written = match node.kind {
            NodeKind::Write { channel, .. } => Some(channel),
            _ => None,
        };
        let place = place_of(graph, row);
        if parts.last() != Some(&place) {
            parts.push(place);
        }
    }
    parts.join(" → ")
}

/// Why a bound gets lost, as a clause.
fn why(graph: &Graph, timing: &Timing, culprit: &Cause) -> String {
    let named = |channel: usize| graph.channels[channel].name.as_str();
    let at = || place_of(graph, &timing.rows[culprit.row]);
    match culprit.kind {
        CauseKind::BestEffort { channel } => {
            format!("the best-effort channel {} has no latency bound", named(channel))
        }
        CauseKind::Unsent { channel } => {
            let channel = named(channel);
            format!("what is read from {channel} is written in some executions only, or never")
        }
        CauseKind::Shared { channel } => {
            format!("several readers of {} take each other's messages", named(channel))
        }
        CauseKind::Loop => format!("the loop at {} has no known number of rounds", at()),
        CauseKind::Delay => format!("the delay at {} is not known", at()),
        CauseKind::Processor => format!("the tasks of the processor leave no bound for {}", at()),
        // Its own words are in [`locks`].
        CauseKind::Locks { .. } => "tasks may wait for each other's locks for ever".to_owned(),
    }
}

/// Which tasks may wait for each other's locks for ever, and where.
pub(super) fn locks(study: &TimingReport) -> Vec<Finding> {
    let finding = |cycle: &LockCycle| Finding {
        what: "tasks may wait for each other's locks for ever".to_owned(),
        when: cycle.path(&study.graph),
        path: cycle.places(&study.graph),
    };
    study.lock_cycles.iter().map(finding).collect()
}

/// Something that the analysis found, once for all iterations.
#[derive(PartialEq, Eq)]
pub(super) struct Finding {
    /// What.
    pub(super) what: String,
    /// Where it first is so, and where else.
    pub(super) when: String,
    /// On which way.
    pub(super) path: String,
}

/// Puts together what is the same in several iterations.
fn grouped<T, K: Ord>(of: &[T], key: impl Fn(&T) -> K) -> Vec<Vec<&T>> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut found: Vec<Vec<&T>> = Vec::new();
    for one in of {
        let place = *places.entry(key(one)).or_insert(found.len());
        match found.get_mut(place) {
            Some(others) => others.push(one),
            None => found.push(vec![one]),
        }
    }
    found
}

/// In which iterations: `iteration 2`, `iterations 2, 3 and 4`, `iteration 2 and 7 more`.
fn iterations(timing: &Timing, rows: impl Iterator<Item = usize>) -> String {
    let mut names: Vec<String> = rows
        .map(|row| iteration(&timing.rows[row].iteration))
        .filter(|it| !it.is_empty())
        .collect();
    names.dedup();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("iteration {one}"),
        [first, more @ ..] if more.len() > 3 => {
            format!("iteration {first} and {} more", more.len())
        }
        several => format!("iterations {}", listed(several)),
    }
}

/// The rounds of a row's loops: `2`, `2.1`.
pub(super) fn iteration(rounds: &[u32]) -> String {
    rounds.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// Whether a node's place is a line of its task's file, which is a short name.
pub(super) fn is_line(node: &TaskNode) -> bool {
    node.place.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// The task and node of a row, and so what it has in common with those of other iterations.
fn node_at(timing: &Timing, row: usize) -> (usize, usize) {
    (timing.rows[row].task, timing.rows[row].node)
}

/// Why the program is not composable.
pub(super) fn culprits(graph: &Graph, timing: &Timing) -> Vec<Finding> {
    let key = |it: &Cause| (why(graph, timing, it), node_at(timing, it.row));
    let finding = |found: Vec<&Cause>| Finding {
        what: why(graph, timing, found[0]),
        when: iterations(timing, found.iter().map(|it| it.row)),
        path: path(graph, timing, &found[0].path),
    };
    grouped(&timing.causes, key).into_iter().map(finding).collect()
}

/// The deadlines that may be missed.
pub(super) fn misses(graph: &Graph, timing: &Timing) -> Vec<Finding> {
    let key = |it: &Miss| (point_kind(it.kind), node_at(timing, it.row));
    let finding = |found: Vec<&Miss>| {
        let by = found.iter().map(|it| it.by).reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b)));
        let by = by.flatten().map_or(", by how much has no bound".to_owned(), |by| {
            format!(" by up to {}", time(by))
        });
        let is = if found.iter().any(|it| it.is_certain) { "is" } else { "may be" };
        let at = place_of(graph, &timing.rows[found[0].row]);
        Finding {
            what: format!("the {} point at {at} {is} late{by}", point_kind(found[0].kind)),
            when: iterations(timing, found.iter().map(|it| it.row)),
            path: path(graph, timing, &found[0].path),
        }
    };
    grouped(&timing.misses, key).into_iter().map(finding).collect()
}

/// What else may go wrong.
pub(super) fn troubles(graph: &Graph, timing: &Timing) -> Vec<Finding> {
    let at = |row: &usize| place_of(graph, &timing.rows[*row]);
    let what = |trouble: &Hazard| match trouble {
        Hazard::Overflow { row, channel } => {
            let channel = &graph.channels[*channel].name;
            format!("the channel {channel} may be full at {}, and the value is lost", at(row))
        }
        Hazard::Deadlock { rows } => {
            let places = listed(&rows.iter().map(at).collect::<Vec<_>>());
            format!("tasks wait for each other for ever at {places}")
        }
    };
    let row = |trouble: &&Hazard| match trouble {
        Hazard::Overflow { row, .. } => Some(*row),
        Hazard::Deadlock { rows } => rows.first().copied(),
    };
    let finding = |found: Vec<&Hazard>| Finding {
        what: what(found[0]),
        when: iterations(timing, found.iter().filter_map(row)),
        path: String::new(),
    };
    grouped(&timing.hazards, what).into_iter().map(finding).collect()
}

/// Whether the program is composable, in a word or two and the rest of a sentence.
pub(super) fn verdict(study: &TimingReport) -> (&'static str, String) {
    let more = |text: &str| text.to_owned();
    match study.program.verdict() {
        Composability::Composable => {
            ("composable", more("to its logical timing: every logical time is bounded."))
        }
        Composability::NotComposable => ("not composable", more("to its logical timing.")),
        Composability::Unproven { rounds } => {
            let first = match rounds {
                0 => "before the first iteration".to_owned(),
                1 => "for the first iteration".to_owned(),
                _ => format!("for the first {rounds} iterations"),
            };
            let known = format!("beyond that: every logical time is bounded {first}");
            ("not proven", format!("{known}; of later ones nothing is known."))
        }
    }
}

/// Of which tasks nothing is proven beyond some iterations, and why.
pub(super) fn open(graph: &Graph, timing: &Timing) -> Vec<Finding> {
    let finding = |component: &Component| {
        let Course::Open { rounds, why } = component.course else { return None };
        let name = |task: &usize| graph.tasks[*task].name.clone();
        let why = why.words(graph);
        let tasks: Vec<String> = component.tasks.iter().map(name).collect();
        let beyond = counted(rounds as usize, "iteration", "iterations");
        Some(Finding {
            what: format!("of {} nothing is proven beyond {beyond}: {why}", listed(&tasks)),
            when: String::new(),
            path: String::new(),
        })
    };
    timing.components.iter().filter_map(finding).collect()
}

/// The parts of a finding as one line.
pub(super) fn line(finding: &Finding) -> String {
    let mut text = finding.what.clone();
    if !finding.when.is_empty() {
        text = format!("{text}; {}", finding.when);
    }
    if !finding.path.is_empty() {
        text = format!("{text}: {}", finding.path);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::graph::Binary;

    #[test]
    fn times_lose_no_nanosecond() {
        for (ns, text, in_ms) in [
            (0, "0 ms", "0"),
            (10_000_000, "10 ms", "10"),
            (1_500_000_000, "1.5 s", "1500"),
            (1_000_000_500, "1.0000005 s", "1000.0005"),
            (1_234_567, "1234.567 µs", "1.234567"),
            (1_001, "1.001 µs", "0.001001"),
            (999, "999 ns", "0.000999"),
            (-2_500_000, "-2.5 ms", "-2.5"),
        ] {
            assert_eq!(
                (time(Span::from_ns(ns)), ms(Span::from_ns(ns))),
                (text.into(), in_ms.into())
            );
        }
        let at = Span::from_ms;
        assert_eq!(interval(Interval::exactly(at(10))), "10");
        assert_eq!(interval(Interval::between(at(10), at(12))), "10…12");
        assert_eq!(interval(Interval::from(at(10))), "10…∞");
    }

    #[test]
    fn expressions_read_as_in_c() {
        let r0 = || Box::new(Expression::Register(0));
        let plus = Expression::Binary(Binary::Add, r0(), Box::new(Expression::Constant(1)));
        let all = Expression::Binary(Binary::Less, Box::new(plus), Box::new(Expression::Unknown));
        assert_eq!(expression(&Expression::Unary(Unary::Not, Box::new(all))), "!((r0 + 1) < ?)");
        let plus = Expression::Binary(Binary::Add, r0(), Box::new(Expression::Constant(1)));
        let octet = Expression::Unary(Unary::Within { lo: 0, hi: 255 }, Box::new(plus));
        assert_eq!(expression(&octet), "r0 + 1");
        assert_eq!((octet.value(&[Some(254)]), octet.value(&[Some(255)])), (Some(255), None));
    }
}
