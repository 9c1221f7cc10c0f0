//! Extraction of job segments: the paths through a task, from each instant at which it may be
//! released to the next.
//!
//! A task is released at its start, at timing points, and when it continues after it may have
//! waited for a message: those are *stops*. Registers are followed as far as their values are
//! known.

use super::cycles::Request;
use super::load::ns;
use onbeat_model::graph::{ChannelKind, Expression, Graph, NodeKind, PointKind, Task};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// More than any work that is bounded, in nanoseconds.
pub(super) const UNBOUNDED: i128 = i64::MAX as i128;

/// With more stops, or states between two of them, less of the registers is followed.
const STOPS_MAX: usize = 256;
const STATES_MAX: usize = 4_096;

/// A lock is followed so many times within itself.
const HELD_MAX: usize = 8;

/// What is followed of registers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follow {
    /// All of their values.
    All,
    /// What is set since the last stop.
    Between,
    /// Nothing.
    Nothing,
}

/// Registers' values and the resources that are held: what decides, together with the node, what
/// comes next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Memory {
    registers: Vec<Option<i64>>,
    held: Vec<usize>,
    /// Whether the next timing point does not count (`skipdelay`).
    skips: bool,
}

/// Where a task may be released.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stop {
    pub(super) node: usize,
    /// The last timing point, or node 0.
    last: usize,
    memory: Memory,
}

/// The paths from a stop to the next ones.
#[derive(Clone, Debug, Default)]
struct Paths {
    /// Node, whether something is held there, what comes next.
    states: Vec<(usize, Vec<usize>, Vec<usize>)>,
    exits: Vec<Exit>,
    /// Whether the origin moves in between.
    has_gettime: bool,
}

/// Where paths end.
#[derive(Clone, Debug)]
struct Exit {
    /// The last state.
    state: usize,
    end: SegmentExit,
    /// Where control comes: a timing point, a wait, or the task's end.
    node: usize,
    last: usize,
}

/// How a job segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentExit {
    /// A stop, or the task's end.
    pub(super) to: Option<usize>,
    /// At a timing point: from the origin to the release, if it is known.
    pub(super) period: Option<i64>,
    /// At a timing point: from the origin to the deadline, if there is one and it is known.
    pub(super) deadline: Option<i64>,
}

/// A job segment: the work from a stop to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobSegment {
    pub(super) from: usize,
    pub(super) end: SegmentExit,
    /// At most; [`UNBOUNDED`] at most.
    pub(super) amount: i128,
}

/// All paths through a task.
pub(super) struct Extraction<'a> {
    graph: &'a Graph,
    task: &'a Task,
    follow: Follow,
    pub(super) stops: Vec<Stop>,
    paths: Vec<Paths>,
}

/// Whether somebody who comes to a node may have to wait for something else than time.
fn waits(graph: &Graph, kind: &NodeKind) -> bool {
    match kind {
        NodeKind::Read { .. } | NodeKind::Write { waits: true, .. } => true,
        NodeKind::Write { channel, .. } => {
            !matches!(graph.channels[*channel].kind, ChannelKind::Fifo { .. })
        }
        _ => false,
    }
}

impl<'a> Extraction<'a> {
    pub(super) fn new(graph: &'a Graph, task: &'a Task) -> Self {
        let live = live(task);
        for follow in [Follow::All, Follow::Between] {
            if let Some(extraction) = Self::with(graph, task, follow, &live) {
                return extraction;
            }
        }
        Self::with(graph, task, Follow::Nothing, &live).unwrap_or_else(|| {
            // More resources held in more ways than anybody can follow.
            Self { graph, task, follow: Follow::Nothing, stops: Vec::new(), paths: Vec::new() }
        })
    }

    /// Whether there was too much to follow.
    pub(super) fn is_lost(&self) -> bool {
        self.stops.is_empty()
    }

    /// None if that is too much to follow.
    fn with(graph: &'a Graph, task: &'a Task, follow: Follow, live: &[Vec<bool>]) -> Option<Self> {
        let registers = vec![None; usize::from(task.registers)];
        let memory = Memory { registers, held: Vec::new(), skips: false };
        let mut extraction = Self { graph, task, follow, stops: Vec::new(), paths: Vec::new() };
        extraction.stops.push(Stop { node: 0, last: 0, memory });
        while extraction.paths.len() < extraction.stops.len() {
            let from = extraction.paths.len();
            let paths = extraction.from(from, live)?;
            extraction.paths.push(paths);
            if extraction.stops.len() > STOPS_MAX {
                return None;
            }
        }
        Some(extraction)
    }

    /// The paths from a stop; new stops are added.
    fn from(&mut self, from: usize, live: &[Vec<bool>]) -> Option<Paths> {
        let stop = self.stops[from].clone();
        let mut paths = Paths::default();
        let mut known: HashMap<(usize, Memory), usize> = HashMap::new();
        let mut memories = vec![stop.memory.clone()];
        paths.states.push((stop.node, stop.memory.held.clone(), Vec::new()));
        let mut at = 0;
        while at < paths.states.len() {
            let node = paths.states[at].0;
            let before = memories[at].clone();
            let nexts = self.nexts(node, &before);
            paths.has_gettime |= matches!(self.task.nodes[node].kind, NodeKind::Gettime);
            let guard = self.task.nodes[node].guard.filter(|_| before.held.is_empty());
            if let Some(guard) = guard {
                self.exit(&mut paths, at, guard, &before, (stop.last, live));
            }
            for (next, mut memory) in nexts {
                forget(&mut memory, &live[next]);
                let kind = &self.task.nodes[next].kind;
                let is_point = matches!(kind, NodeKind::Point { .. });
                let ends = matches!(kind, NodeKind::End) || waits(self.graph, kind);
                if ends || is_point && !memory.skips {
                    self.exit(&mut paths, at, next, &memory, (stop.last, live));
                    continue;
                }
                memory.skips &= !is_point;
                let state = *known.entry((next, memory.clone())).or_insert_with(|| {
                    paths.states.push((next, memory.held.clone(), Vec::new()));
                    memories.push(memory);
                    paths.states.len() - 1
                });
                paths.states[at].2.push(state);
            }
            if paths.states.len() > STATES_MAX {
                return None;
            }
            at += 1;
        }
        Some(paths)
    }

    /// What comes after a node, and the memory then.
    fn nexts(&self, node: usize, before: &Memory) -> Vec<(usize, Memory)> {
        let node = &self.task.nodes[node];
        let mut after = before.clone();
        let mut nexts = &node.next[..];
        match &node.kind {
            NodeKind::Set { register, value } => {
                let value =
                    value.value(&before.registers).filter(|_| self.follow != Follow::Nothing);
                after.registers[usize::from(*register)] = value;
            }
            NodeKind::Branch(condition) => match condition.value(&before.registers) {
                Some(0) => nexts = &nexts[nexts.len().min(1)..],
                Some(_) => nexts = &nexts[..nexts.len().min(1)],
                None => {}
            },
            NodeKind::Lock(resource) | NodeKind::Take(resource) => {
                let times = after.held.iter().filter(|held| *held == resource).count();
                after.held.extend((times < HELD_MAX).then_some(*resource));
            }
            NodeKind::Unlock(resource) => {
                if let Some(at) = after.held.iter().rposition(|held| held == resource) {
                    after.held.remove(at);
                }
            }
            NodeKind::Skip => after.skips = true,
            _ => {}
        }
        nexts.iter().map(|next| (*next, after.clone())).collect()
    }

    /// Control leaves the last state for a node that ends the path.
    fn exit(
        &mut self,
        paths: &mut Paths,
        state: usize,
        node: usize,
        memory: &Memory,
        (last, live): (usize, &[Vec<bool>]),
    ) {
        let constant = |e: &Expression| e.value(&memory.registers);
        let (period, deadline, last_then) = match &self.task.nodes[node].kind {
            NodeKind::Point { period, deadline, .. } => {
                (constant(period), deadline.as_ref().and_then(constant), node)
            }
            _ => (None, None, last),
        };
        let to = (!matches!(self.task.nodes[node].kind, NodeKind::End)).then(|| {
            let mut memory = Memory { skips: false, ..memory.clone() };
            forget(&mut memory, &live[node]);
            if self.follow != Follow::All {
                memory.registers.fill(None);
            }
            let stop = Stop { node, last: last_then, memory };
            self.stops.iter().position(|known| *known == stop).unwrap_or_else(|| {
                self.stops.push(stop);
                self.stops.len() - 1
            })
        });
        paths.exits.push(Exit { state, end: SegmentExit { to, period, deadline }, node, last });
    }

    pub(super) fn is_soft(&self, stop: usize) -> bool {
        let kind = &self.task.nodes[self.stops[stop].node].kind;
        matches!(kind, NodeKind::Point { kind: PointKind::Soft, .. })
    }

    pub(super) fn is_point(&self, stop: usize) -> bool {
        matches!(self.task.nodes[self.stops[stop].node].kind, NodeKind::Point { .. })
    }

    /// The channel that is read at a stop, and whether the reader waits for the fixed delay.
    pub(super) fn reads(&self, stop: usize) -> Option<(usize, bool)> {
        match self.task.nodes[self.stops[stop].node].kind {
            NodeKind::Read { channel, waits } => Some((channel, waits)),
            _ => None,
        }
    }

    /// The channel that is written at a stop, without the fixed delay.
    pub(super) fn writes(&self, stop: usize) -> Option<usize> {
        match self.task.nodes[self.stops[stop].node].kind {
            NodeKind::Write { channel, waits: false } => Some(channel),
            _ => None,
        }
    }

    /// The job segments. What must be given up at a deadline is no longer than that.
    pub(super) fn job_segments(&self) -> Vec<JobSegment> {
        let mut all = Vec::new();
        for (from, paths) in self.paths.iter().enumerate() {
            let total = paths.longest(|at, _| self.work(at));
            let parts = |point: usize| {
                let is_it =
                    |at: usize, held: bool| self.task.nodes[at].guard == Some(point) && !held;
                let firm =
                    paths.longest(|at, held| if is_it(at, held) { self.work(at) } else { 0 });
                let rest =
                    paths.longest(|at, held| if is_it(at, held) { 0 } else { self.work(at) });
                (firm, rest)
            };
            let mut known: BTreeMap<usize, (Vec<i128>, Vec<i128>)> = BTreeMap::new();
            for exit in &paths.exits {
                let (whole, at) = (self.segment(exit), exit.state);
                let mut amount = total[at] + whole;
                let deadline = exit.end.deadline.filter(|_| self.is_firm(exit.node));
                if let Some(deadline) = deadline.filter(|_| !paths.has_gettime) {
                    let (firm, rest) = known.entry(exit.node).or_insert_with(|| parts(exit.node));
                    let is_held = self.task.nodes[paths.states[at].0].kind == NodeKind::Held;
                    let (cut, kept) = if is_held { (0, whole) } else { (whole, 0) };
                    // Who would need longer misses it.
                    let firm = (firm[at] + cut).min(i128::from(deadline.max(0)) + 1);
                    amount = amount.min(firm + rest[at] + kept);
                }
                amount += deadline.map_or(0, |_| self.abort(exit));
                all.push(JobSegment { from, end: exit.end, amount: amount.min(UNBOUNDED) });
            }
        }
        merged(all)
    }

    /// How often something happens, at most.
    pub(super) fn counts(&self, is_counted: impl Fn(&NodeKind) -> bool) -> Vec<JobSegment> {
        let mut all = Vec::new();
        for (from, paths) in self.paths.iter().enumerate() {
            let count = |at: usize, _| i128::from(is_counted(&self.task.nodes[at].kind));
            let counts = paths.longest(count);
            let exits = paths.exits.iter();
            all.extend(exits.map(|e| JobSegment { from, end: e.end, amount: counts[e.state] }));
        }
        merged(all)
    }

    /// What a node takes at most.
    fn work(&self, node: usize) -> i128 {
        match self.task.nodes[node].kind {
            NodeKind::Fragment { execution } => execution.hi.map_or(UNBOUNDED, ns),
            _ => 0,
        }
    }

    fn is_firm(&self, node: usize) -> bool {
        let kind = &self.task.nodes[node].kind;
        matches!(kind, NodeKind::Point { kind: PointKind::Firm | PointKind::Hard, .. })
    }

    /// What a whole segment takes that ends so.
    fn segment(&self, exit: &Exit) -> i128 {
        let mine = self.task.segments.iter().filter(|s| s.from == exit.last && s.to == exit.node);
        mine.map(|segment| segment.execution.hi.map_or(UNBOUNDED, ns)).sum()
    }

    /// What an abort of a segment that ends so takes.
    fn abort(&self, exit: &Exit) -> i128 {
        let mine = self.task.segments.iter().filter(|s| s.from == exit.last && s.to == exit.node);
        mine.map(|segment| segment.abort.hi.map_or(UNBOUNDED, ns)).sum()
    }

    /// What is waited for, and what is held then.
    pub(super) fn requests(&self) -> Vec<Request> {
        let states = self.paths.iter().flat_map(|paths| &paths.states);
        let request =
            |(node, held, _): &(usize, Vec<usize>, Vec<usize>)| match self.task.nodes[*node].kind {
                NodeKind::Lock(wants) => {
                    Some(Request { node: *node, held: held.iter().copied().collect(), wants })
                }
                _ => None,
            };
        states.filter_map(request).collect()
    }

    /// The critical sections: what is locked, or may be where this is unknown, and the longest
    /// work, from the first lock to the last unlock.
    pub(super) fn sections(&self) -> Vec<(Vec<usize>, i128)> {
        let mut all: BTreeMap<Vec<usize>, i128> = BTreeMap::new();
        for paths in &self.paths {
            for (node, held, next) in &paths.states {
                let kind = &self.task.nodes[*node].kind;
                if !held.is_empty() || !matches!(kind, NodeKind::Lock(_) | NodeKind::Take(_)) {
                    continue;
                }
                for inside in next {
                    let (resources, length) = self.section(paths, *inside);
                    let known = all.entry(resources).or_default();
                    *known = length.max(*known);
                }
            }
        }
        all.into_iter().filter(|(resources, _)| !resources.is_empty()).collect()
    }

    /// The section that a lock before state `begin` begins.
    fn section(&self, paths: &Paths, begin: usize) -> (Vec<usize>, i128) {
        let is_inside = |at: usize| !paths.states[at].1.is_empty();
        let mut states = vec![begin];
        let mut places = HashMap::from([(begin, 0)]);
        let mut next: Vec<Vec<usize>> = Vec::new();
        while let Some(at) = states.get(next.len()) {
            let inside: Vec<usize> =
                paths.states[*at].2.iter().copied().filter(|to| is_inside(*to)).collect();
            let place = |to: usize| {
                *places.entry(to).or_insert_with(|| {
                    states.push(to);
                    states.len() - 1
                })
            };
            next.push(inside.into_iter().map(place).collect());
        }
        let weights = states.iter().map(|at| self.work(paths.states[*at].0)).collect::<Vec<_>>();
        let length = longest(&next, &weights, &[0]).into_iter().max().unwrap_or(0);
        let held = states.iter().flat_map(|at| paths.states[*at].1.iter().copied());
        let mut resources: BTreeSet<usize> = held.collect();
        for (vague, others) in &self.graph.aliases {
            if resources.contains(vague) {
                resources.extend(others);
            }
        }
        // A section that continues over a stop has no end that is known here.
        let is_last = |at: usize| {
            let (node, held, _) = &paths.states[at];
            matches!(self.task.nodes[*node].kind, NodeKind::Unlock(_)) && held.len() == 1
        };
        let mut exits = paths.exits.iter().map(|exit| exit.state);
        let is_open = exits.any(|at| places.contains_key(&at) && !is_last(at));
        (resources.into_iter().collect(), if is_open { UNBOUNDED } else { length })
    }
}

/// Job segments that end alike become one, with the greater amount.
fn merged(all: Vec<JobSegment>) -> Vec<JobSegment> {
    let mut merged: BTreeMap<(usize, SegmentExit), i128> = BTreeMap::new();
    for job_segment in all {
        let amount = merged.entry((job_segment.from, job_segment.end)).or_default();
        *amount = job_segment.amount.max(*amount);
    }
    merged.into_iter().map(|((from, end), amount)| JobSegment { from, end, amount }).collect()
}

fn forget(memory: &mut Memory, live: &[bool]) {
    for (register, _) in memory.registers.iter_mut().zip(live).filter(|(_, live)| !**live) {
        *register = None;
    }
}

impl Paths {
    /// The greatest sum of weights on a way from state 0 to each one, both included; at least
    /// [`UNBOUNDED`] where it has a cycle, -1 where no way leads to.
    fn longest(&self, weight: impl Fn(usize, bool) -> i128) -> Vec<i128> {
        let next: Vec<Vec<usize>> = self.states.iter().map(|state| state.2.clone()).collect();
        let weights = self.states.iter().map(|(node, held, _)| weight(*node, !held.is_empty()));
        longest(&next, &weights.collect::<Vec<_>>(), &[0])
    }
}

/// The greatest sum of weights on a path from one of `begins` to each node, both included; at least
/// [`UNBOUNDED`] where it grows round and round, -1 where no path leads to.
pub(super) fn longest(next: &[Vec<usize>], weights: &[i128], begins: &[usize]) -> Vec<i128> {
    let order = finished(next, begins);
    let mut before = vec![Vec::new(); next.len()];
    for (at, nexts) in next.iter().enumerate() {
        nexts.iter().for_each(|to| before[*to].push(at));
    }
    // Nodes that lie on a way round with each other, in an order that no way out turns back.
    let mut round = vec![usize::MAX; next.len()];
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let is_reached: Vec<bool> = {
        let mut reached = vec![false; next.len()];
        order.iter().for_each(|at| reached[*at] = true);
        reached
    };
    for first in order.iter().rev() {
        let (mut stack, mut members) = (vec![*first], Vec::new());
        while let Some(at) = stack.pop() {
            if round[at] == usize::MAX && is_reached[at] {
                round[at] = rounds.len();
                members.push(at);
                stack.extend(&before[at]);
            }
        }
        if !members.is_empty() {
            rounds.push(members);
        }
    }
    let mut sums = vec![-1; next.len()];
    begins.iter().for_each(|at| sums[*at] = 0);
    for members in &rounds {
        let comes = members.iter().map(|at| sums[*at]).max().unwrap_or(-1);
        let loops = members.len() > 1 || next[members[0]].contains(&members[0]);
        let inside: i128 = members.iter().map(|at| weights[*at]).max().unwrap_or(0);
        for at in members {
            sums[*at] = match loops {
                true if inside > 0 => UNBOUNDED,
                true => comes,
                false => (comes + weights[*at]).min(UNBOUNDED),
            };
        }
        for at in members {
            for to in &next[*at] {
                if round[*to] != round[*at] {
                    sums[*to] = sums[*to].max(sums[*at]);
                }
            }
        }
    }
    sums
}

/// Nodes in the order in which a search in depth is done with them.
fn finished(next: &[Vec<usize>], begins: &[usize]) -> Vec<usize> {
    let mut seen = vec![false; next.len()];
    let mut order = Vec::new();
    for begin in begins {
        let mut stack = vec![(*begin, 0)];
        if std::mem::replace(&mut seen[*begin], true) {
            continue;
        }
        while let Some((at, done)) = stack.last_mut() {
            match next[*at].get(*done) {
                Some(to) => {
                    *done += 1;
                    if !std::mem::replace(&mut seen[*to], true) {
                        stack.push((*to, 0));
                    }
                }
                None => {
                    order.push(*at);
                    stack.pop();
                }
            }
        }
    }
    order
}

/// Which registers matter at each node: their value may be used before they get another one.
fn live(task: &Task) -> Vec<Vec<bool>> {
    let mut live = vec![vec![false; usize::from(task.registers)]; task.nodes.len()];
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for (at, node) in task.nodes.iter().enumerate().rev() {
            let mut mine = vec![false; usize::from(task.registers)];
            for to in node.next.iter().chain(&node.guard) {
                mine.iter_mut().zip(&live[*to]).for_each(|(mine, then)| *mine |= then);
            }
            match &node.kind {
                NodeKind::Set { register, value } => {
                    // An abort may come before it is set.
                    let kept = node.guard.is_some_and(|to| live[to][usize::from(*register)]);
                    mine[usize::from(*register)] = kept;
                    used(value, &mut mine);
                }
                NodeKind::Branch(condition) => used(condition, &mut mine),
                NodeKind::Point { period, deadline, .. } => {
                    used(period, &mut mine);
                    deadline.iter().for_each(|deadline| used(deadline, &mut mine));
                }
                _ => {}
            }
            is_changed |= mine != live[at];
            live[at] = mine;
        }
    }
    live
}

fn used(expression: &Expression, registers: &mut [bool]) {
    expression.registers().for_each(|register| registers[usize::from(register)] = true);
}
