//! Tasks that may wait for each other's locks for ever.
//!
//! A circular wait needs tasks each of which holds something while it waits for what the next one
//! holds (Coffman, Elphick and Shoshani 1971). None of them can hold what another one of them
//! holds, so locks that are all taken within one and the same outer lock are no danger.

use super::extraction::Extraction;
use onbeat_model::graph::Graph;
use onbeat_model::timing::{LockCycle, LockWait};
use std::collections::BTreeSet;

/// So many steps are looked for cycles. If there is more to look at, the first tasks that hold one
/// lock while they take another one stand for what was not looked at.
const STEPS_MAX: usize = 200_000;

/// So many cycles are told.
const CYCLES_MAX: usize = 16;

/// A lock that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) node: usize,
    /// What is held there.
    pub(super) held: BTreeSet<usize>,
    pub(super) wants: usize,
}

/// All requests of a graph.
pub(super) struct Requests<'a> {
    graph: &'a Graph,
    /// With their tasks.
    all: Vec<(usize, Request)>,
}

impl<'a> Requests<'a> {
    pub(super) fn new(graph: &'a Graph, extractions: &[Extraction<'_>]) -> Self {
        let mut all: Vec<(usize, Request)> = Vec::new();
        for (task, extraction) in extractions.iter().enumerate() {
            for request in extraction.requests() {
                let same = |(of, known): &(usize, Request)| {
                    *of == task && known.wants == request.wants && known.held == request.held
                };
                if !all.iter().any(same) {
                    all.push((task, request));
                }
            }
        }
        Self { graph, all }
    }

    /// What a resource may be.
    fn may_be(&self, resource: usize) -> BTreeSet<usize> {
        let known = self.graph.aliases.iter().find(|(vague, _)| *vague == resource);
        let others = known.into_iter().flat_map(|(_, others)| others);
        others.copied().chain([resource]).collect()
    }

    fn may_be_same(&self, a: usize, b: usize) -> bool {
        self.may_be(a).contains(&b) || self.may_be(b).contains(&a)
    }

    /// Whether what one wants may be held by another.
    fn waits_for(&self, wants: usize, held: &BTreeSet<usize>) -> bool {
        held.iter().any(|held| self.may_be_same(wants, *held))
    }

    /// Whether two tasks can hold all of this at once.
    fn can_be_apart(&self, a: &BTreeSet<usize>, b: &BTreeSet<usize>) -> bool {
        let is_vague = |r: &usize| self.graph.aliases.iter().any(|(vague, _)| vague == r);
        a.intersection(b).all(is_vague)
    }

    /// The cycles, none of them twice.
    pub(super) fn cycles(&self) -> Vec<LockCycle> {
        self.search().found
    }

    fn search(&self) -> Search<'_, 'a> {
        let nested: Vec<usize> =
            (0..self.all.len()).filter(|at| !self.all[*at].1.held.is_empty()).collect();
        let mut search =
            Search { requests: self, nested, found: Vec::new(), steps: 0, is_cut_short: false };
        for first in search.nested.clone() {
            search.follow(&mut vec![first]);
        }
        if search.is_cut_short && search.found.is_empty() {
            let first = search.nested.clone();
            search.tell(&first[..first.len().min(2)]);
        }
        search
    }

    /// Tasks that may wait for ever: those of the cycles, and all that want what these hold. Where
    /// not all was looked at, whoever holds one lock while it takes another one may be in a cycle.
    pub(super) fn stuck(&self) -> BTreeSet<usize> {
        let search = self.search();
        let is_in = |task: usize, request: &Request| {
            let is_it = |w: &LockWait| w.task == task && w.wants == request.wants;
            let is_told = search.found.iter().flat_map(|cycle| &cycle.waits).any(is_it);
            is_told || search.is_cut_short && !request.held.is_empty()
        };
        let mut tasks = BTreeSet::new();
        let mut held: BTreeSet<usize> = BTreeSet::new();
        for (task, request) in self.all.iter().filter(|(task, r)| is_in(*task, r)) {
            tasks.insert(*task);
            held.extend(&request.held);
        }
        loop {
            let before = (tasks.len(), held.len());
            for (task, request) in &self.all {
                if self.waits_for(request.wants, &held) {
                    tasks.insert(*task);
                    held.extend(&request.held);
                }
            }
            if before == (tasks.len(), held.len()) {
                return tasks;
            }
        }
    }
}

struct Search<'r, 'a> {
    requests: &'r Requests<'a>,
    /// Those of which something is held.
    nested: Vec<usize>,
    found: Vec<LockCycle>,
    steps: usize,
    /// Whether there was more to look at.
    is_cut_short: bool,
}

impl Search<'_, '_> {
    /// Continues from the last of a chain of requests of different tasks, the first of which is
    /// that of the first task.
    fn follow(&mut self, chain: &mut Vec<usize>) {
        self.steps += 1;
        if self.steps > STEPS_MAX || self.found.len() >= CYCLES_MAX {
            self.is_cut_short = true;
            return;
        }
        let of = |at: usize| &self.requests.all[at];
        let (first, wants) = (of(chain[0]), of(chain[chain.len() - 1]).1.wants);
        if self.requests.waits_for(wants, &first.1.held) {
            self.tell(&chain.clone());
            return;
        }
        let is_next = |next: &usize| {
            let (task, request) = of(*next);
            *task > first.0
                && self.requests.waits_for(wants, &request.held)
                && chain.iter().all(|at| {
                    of(*at).0 != *task && self.requests.can_be_apart(&of(*at).1.held, &request.held)
                })
        };
        let nexts: Vec<usize> = self.nested.iter().copied().filter(is_next).collect();
        for next in nexts {
            chain.push(next);
            self.follow(chain);
            chain.pop();
        }
    }

    fn tell(&mut self, chain: &[usize]) {
        let wait = |at: &usize| {
            let (task, request) = &self.requests.all[*at];
            LockWait { task: *task, node: request.node, wants: request.wants }
        };
        let cycle = LockCycle { waits: chain.iter().map(wait).collect() };
        let key = |cycle: &LockCycle| -> Vec<(usize, usize)> {
            cycle.waits.iter().map(|wait| (wait.task, wait.wants)).collect()
        };
        if !self.found.iter().any(|known| key(known) == key(&cycle)) {
            self.found.push(cycle);
        }
    }
}
