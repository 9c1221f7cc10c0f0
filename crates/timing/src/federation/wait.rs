//! How long federates must wait for each other: longest paths.

use super::{Figure, Ns, Unknown, connection_name, span};
use onbeat_model::federation::{ConnectionId, Federation};
use onbeat_model::time::Span;

/// Federates that wait for each other: each would have to wait longer than the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitCycle {
    /// Its connections, in the direction of their messages.
    pub connections: Vec<ConnectionId>,
    /// By how much the waits grow in each round.
    pub excess: Span,
    /// Per connection: the smallest `after` there that breaks the cycle, if the delays of tags
    /// change nothing else.
    pub after: Vec<Span>,
}

/// How long a federate waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// As long as it must.
    Free,
    /// So long.
    Given(Ns),
    /// It is not known.
    Unknown(Unknown),
}

/// A logical connection: the latest arrival, relative to its tag and by the reader's clock.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) connection: ConnectionId,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Less the wait of the writer.
    pub(super) weight: Figure<Ns>,
    /// However long the writer waits.
    pub(super) cap: Option<Ns>,
}

impl Edge {
    /// The latest arrival if the writer waits so long.
    pub(super) fn arrival(&self, wait: &Figure<Ns>) -> Figure<Ns> {
        let late = match (wait, &self.weight) {
            (Ok(wait), Ok(weight)) => Ok(wait + weight),
            (Err(unknown), _) | (_, Err(unknown)) => Err(unknown.clone()),
        };
        match self.cap {
            None => late,
            Some(cap) => Ok(late.map_or(cap, |late| late.min(cap))),
        }
    }
}

/// The least waits with which nothing arrives later than its reader waits, and the cycles for which
/// there are none.
pub(super) fn solve(
    federation: &Federation,
    waits: &[Wait],
    edges: &[Edge],
) -> (Vec<Figure<Ns>>, Vec<WaitCycle>) {
    let mut waits = waits.to_vec();
    let mut edges = edges.to_vec();
    let mut cycles = Vec::new();
    loop {
        let mut found = known(&waits, &edges);
        let Some(cycle) = relax(&waits, &edges, &mut found) else { return (found, cycles) };
        // A cap bounds what waits for it, however long the others wait.
        if let Some(capped) = cycle.iter().find(|edge| edges[**edge].cap.is_some()) {
            let why = Unknown("only the deadline bounds it".to_owned());
            edges[*capped].weight = Err(why);
            continue;
        }
        let cycle = describe(federation, &edges, &cycle);
        let names = cycle.connections.iter();
        let names = names.map(|id| format!("`{}`", connection_name(federation, *id)));
        let names = names.collect::<Vec<_>>().join(", ");
        let why = format!("the federates that {names} connect wait for each other");
        for id in &cycle.connections {
            waits[federation.connections[id.index()].to.index()] =
                Wait::Unknown(Unknown(why.clone()));
        }
        cycles.push(cycle);
    }
}

/// What is given, zero for what is free, and unknown what depends on what is unknown: who does not
/// know when messages come may wait too short, whatever is given.
fn known(waits: &[Wait], edges: &[Edge]) -> Vec<Figure<Ns>> {
    let begin = |wait: &Wait| match wait {
        Wait::Free => Ok(0),
        Wait::Given(wait) => Ok(*wait),
        Wait::Unknown(unknown) => Err(unknown.clone()),
    };
    let mut found: Vec<Figure<Ns>> = waits.iter().map(begin).collect();
    loop {
        let mut changes = false;
        for edge in edges {
            if found[edge.to].is_err() {
                continue;
            }
            if let Err(unknown) = edge.arrival(&found[edge.from]) {
                found[edge.to] = Err(unknown);
                changes = true;
            }
        }
        if !changes {
            return found;
        }
    }
}

/// Raises the free waits until all arrivals are in time, or there is a cycle: its edges, in order.
fn relax(waits: &[Wait], edges: &[Edge], found: &mut [Figure<Ns>]) -> Option<Vec<usize>> {
    let mut raised: Vec<Option<usize>> = vec![None; waits.len()];
    // A path without a cycle has fewer edges than there are federates.
    for round in 0..=waits.len() {
        let mut last = None;
        for (at, edge) in edges.iter().enumerate() {
            if waits[edge.to] != Wait::Free {
                continue;
            }
            let (Ok(now), Ok(arrival)) = (&found[edge.to], edge.arrival(&found[edge.from])) else {
                continue;
            };
            if arrival > *now {
                found[edge.to] = Ok(arrival);
                raised[edge.to] = Some(at);
                last = Some(edge.to);
            }
        }
        let last = last?;
        if round == waits.len() {
            // With caps, what raised a wait may have done so from elsewhere.
            let capped = || (0..edges.len()).filter(|edge| edges[*edge].cap.is_some()).collect();
            return Some(cycle(edges, &raised, last).unwrap_or_else(capped));
        }
    }
    None
}

/// The cycle that leads to a federate, backwards along what raised its wait.
fn cycle(edges: &[Edge], raised: &[Option<usize>], from: usize) -> Option<Vec<usize>> {
    let mut at = from;
    for _ in 0..raised.len() {
        at = edges[raised[at]?].from;
    }
    let begin = at;
    let mut found = Vec::new();
    loop {
        let edge = raised[at]?;
        found.push(edge);
        at = edges[edge].from;
        if at == begin {
            found.reverse();
            return Some(found);
        }
    }
}

fn describe(federation: &Federation, edges: &[Edge], cycle: &[usize]) -> WaitCycle {
    let weight = |edge: &usize| edges[*edge].weight.clone().unwrap_or(0);
    let excess: Ns = cycle.iter().map(weight).sum();
    let connections: Vec<_> = cycle.iter().map(|edge| edges[*edge].connection).collect();
    let after = |id: &ConnectionId| {
        let now = federation.connections[id.index()].after.time();
        span(super::ns(now) + excess).unwrap_or(Span::MAX)
    };
    WaitCycle {
        after: connections.iter().map(after).collect(),
        connections,
        excess: span(excess).unwrap_or(Span::MAX),
    }
}
