//! Which firm or hard point guards which node, and to which point `skip` goes: what may be the next
//! timing point. The rules are those of `docs/timed-c.md`.

use super::codes;
use super::flow::Flow;
use crate::Sink;
use onbeat_model::diagnostic::Diagnostic;
use onbeat_model::graph::{Expression, NodeKind, PointKind};
use std::collections::BTreeSet;

/// What may be the next timing point from each node on; none: the task ends. A point's own is it.
/// Where there are many, only as many as it takes to tell what guards the node, and that there
/// are several.
fn next_points(flow: &Flow) -> Vec<BTreeSet<Option<usize>>> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); flow.nodes.len()];
    let ways = flow.nodes.iter().enumerate();
    let ways = ways.flat_map(|(from, node)| {
        node.next.iter().map(move |to| (from, entered(flow, from, *to).unwrap_or(*to)))
    });
    for (from, to) in ways.chain(flow.behind.iter().copied()) {
        before[to].push(from);
    }
    let mut next = vec![BTreeSet::new(); flow.nodes.len()];
    for (end, node) in flow.nodes.iter().enumerate() {
        let point = match node.kind {
            NodeKind::Point { .. } => Some(end),
            NodeKind::End => None,
            _ => continue,
        };
        // Each is brought to all from where it may be next.
        next[end].insert(point);
        let mut work = before[end].clone();
        while let Some(at) = work.pop() {
            let is_point = matches!(flow.nodes[at].kind, NodeKind::Point { .. });
            // What a node has, all before it have too: they need no more than it does.
            if !is_point && is_news(flow, &next[at], point) && next[at].insert(point) {
                work.extend(&before[at]);
            }
        }
    }
    next
}

/// The first node in a loop with so many rounds, for who comes to it from before.
fn entered(flow: &Flow, from: usize, to: usize) -> Option<usize> {
    match (&flow.nodes[from].kind, &flow.nodes[to].kind) {
        (
            NodeKind::Set { register, value: Expression::Constant(1..) },
            NodeKind::Branch(condition),
        ) if condition.registers().eq([*register]) => flow.nodes[to].next.first().copied(),
        _ => None,
    }
}

/// Whether one more point that may be next makes a difference.
fn is_news(flow: &Flow, next: &BTreeSet<Option<usize>>, point: Option<usize>) -> bool {
    let of = |point: &Option<usize>| point.and_then(|point| deadline(flow, point));
    next.len() < 2 || next.iter().all(|known| of(known) != of(&point)) && next.len() < 4
}

/// Sets the guards of all nodes, and the ways of `skip`.
pub(super) fn guard(flow: &mut Flow, sink: &mut Sink) {
    let next = next_points(flow);
    let mut told = BTreeSet::new();
    for (at, next) in next.iter().enumerate() {
        match flow.nodes[at].kind {
            NodeKind::Skip => skip(flow, at, next, sink),
            _ if flow.unguarded[at] => {}
            _ => match guarding(flow, at, next) {
                Ok(guard) => flow.nodes[at].guard = guard,
                Err(both) if told.insert(both) => sink.push(two_deadlines(flow, at, both)),
                Err(_) => {}
            },
        }
    }
    check(flow, sink);
}

/// Control comes to every step, and no endless loop keeps it without time passing.
fn check(flow: &Flow, sink: &mut Sink) {
    for (from, at) in &flow.busy {
        if flow.nodes[*from].guard.is_none() {
            let message = "the loop never ends and waits for nothing";
            let help = "add a timing point or a read to it, or a firm or hard point after it";
            sink.push(Diagnostic::error(codes::FLOW, message, *at, "this loop").help(help));
        }
    }
    let mut is_reached = vec![false; flow.nodes.len()];
    let mut work = vec![0];
    while let Some(at) = work.pop() {
        if !std::mem::replace(&mut is_reached[at], true) {
            work.extend(&flow.nodes[at].next);
            work.extend(flow.nodes[at].guard);
        }
    }
    // What follows on a step that is not reached follows from that.
    for at in (1..flow.nodes.len()).filter(|at| is_reached[at - 1] && !is_reached[*at]) {
        let message = "this step is unreachable";
        let help = "remove it, or add a `break` to the loop before it; a loop that only a deadline \
                    ends needs its firm or hard point next";
        let origin = flow.origins[at];
        sink.push(Diagnostic::error(codes::FLOW, message, origin, "this step").help(help));
    }
}

/// The deadline of a firm or hard point.
fn deadline(flow: &Flow, point: usize) -> Option<&Expression> {
    match &flow.nodes[point].kind {
        NodeKind::Point { kind: PointKind::Firm | PointKind::Hard, deadline, .. } => {
            deadline.as_ref()
        }
        _ => None,
    }
}

/// The point that guards a node, or two with different deadlines.
fn guarding(
    flow: &Flow,
    at: usize,
    next: &BTreeSet<Option<usize>>,
) -> Result<Option<usize>, (usize, usize)> {
    let mut points = next.iter().flatten().filter(|point| deadline(flow, **point).is_some());
    let Some(first) = points.next() else { return Ok(None) };
    match points.find(|other| deadline(flow, **other) != deadline(flow, *first)) {
        None => Ok(Some(*first)),
        // What takes no time is never late.
        Some(_) if takes_no_time(&flow.nodes[at].kind) => Ok(None),
        Some(other) => Err((*first, *other)),
    }
}

fn takes_no_time(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Any | NodeKind::Branch(_) | NodeKind::Set { .. } | NodeKind::Gettime)
}

fn two_deadlines(flow: &Flow, at: usize, (first, other): (usize, usize)) -> Diagnostic {
    let place = |point: usize| &flow.nodes[point].place;
    let message = format!(
        "either of two deadlines may apply here: that of `{}` or of `{}`",
        place(first),
        place(other)
    );
    Diagnostic::error(codes::TWO_DEADLINES, message, flow.origins[at], "either may be next")
        .related(flow.origins[first], "one point")
        .related(flow.origins[other], "the other point")
        .help("add a timing point between, give both the same deadline, or make it `critical`")
}

fn skip(flow: &mut Flow, at: usize, next: &BTreeSet<Option<usize>>, sink: &mut Sink) {
    let mut all = next.iter();
    match (all.next(), all.next()) {
        (Some(Some(point)), None) => flow.nodes[at].next = vec![*point],
        _ => {
            let message = "`skip` has no single next timing point";
            let help = "put the same timing point next on every path from here";
            let origin = flow.origins[at];
            sink.push(Diagnostic::error(codes::FLOW, message, origin, "this step").help(help));
        }
    }
}
