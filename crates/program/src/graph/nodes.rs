//! From the steps of a task to the nodes of its graph: consecutive code becomes one fragment.

use super::inline::{Does, Raw};
use super::slice::{Slice, slice};
use onbeat_model::graph::{Expression, Interval, Latest, NodeKind, TaskNode};
use onbeat_model::time::Span;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Steps that control can come to from some, by aborts too.
pub(super) fn reachable(steps: &[Raw], from: &[usize]) -> HashSet<usize> {
    let mut seen: HashSet<usize> = from.iter().copied().collect();
    let mut open = from.to_vec();
    while let Some(at) = open.pop() {
        for next in steps[at].next.iter().copied().chain(steps[at].guard) {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A node of its own.
    Hard,
    /// Code, and branches in it.
    Soft,
    /// Nothing: control passes.
    Pass,
}

/// Code without a way in or out between.
#[derive(Clone, Debug)]
struct Region {
    members: Vec<usize>,
    exits: Vec<usize>,
    /// Where its first statement is, if there is one.
    place: Option<String>,
    execution: Interval,
    is_kept: bool,
}

impl Region {
    const EMPTY: Self = Self {
        members: Vec::new(),
        exits: Vec::new(),
        place: None,
        execution: Interval::ZERO,
        is_kept: false,
    };
}

/// What becomes of a task.
pub(super) struct Made {
    pub nodes: Vec<TaskNode>,
    pub latest: Vec<Latest>,
    /// How many registers its expressions use.
    pub registers: u16,
}

/// The nodes of a task. None if it needs too many registers.
pub(super) fn task(mut steps: Vec<Raw>) -> Option<Made> {
    let reachable = reachable(&steps, &[0]);
    let slice = slice(&mut steps, &reachable)?;
    let registers = u16::try_from(slice.registers.len()).ok()?;
    let order = order(&steps);
    let mut maker = NodeMaker {
        steps,
        slice,
        order,
        classes: Vec::new(),
        next: Vec::new(),
        leaders: Vec::new(),
        regions: BTreeMap::new(),
    };
    maker.classify();
    maker.lead();
    let (nodes, latest) = maker.nodes();
    Some(Made { nodes, latest, registers })
}

/// Steps in an order in which those that come first come first, as far as there are no loops.
fn order(steps: &[Raw]) -> Vec<usize> {
    let mut seen = HashSet::from([0]);
    let mut open = vec![(0, 0)];
    let mut done = Vec::new();
    while let Some((at, way)) = open.pop() {
        // The first way last, for it to come first.
        let mut ways = steps[at].guard.into_iter().chain(steps[at].next.iter().rev().copied());
        match ways.nth(way) {
            Some(next) => {
                open.push((at, way + 1));
                if seen.insert(next) {
                    open.push((next, 0));
                }
            }
            None => done.push(at),
        }
    }
    done.reverse();
    done
}

/// Makes the nodes of a task of the steps that its slice keeps.
struct NodeMaker {
    steps: Vec<Raw>,
    slice: Slice,
    order: Vec<usize>,
    classes: Vec<Class>,
    /// Without what control passes.
    next: Vec<Vec<usize>>,
    /// The first step of the region that a step of code is in.
    leaders: Vec<Option<usize>>,
    /// By their first step.
    regions: BTreeMap<usize, Region>,
}

impl NodeMaker {
    fn class(&self, at: usize) -> Class {
        let step = &self.steps[at];
        let mut ways = step.next.clone();
        ways.dedup();
        let parts = ways.len() > 1;
        match &step.does {
            Does::Set { register, .. } if self.slice.registers.contains_key(register) => {
                Class::Hard
            }
            _ if parts && self.slice.parts.contains(&at) => Class::Hard,
            Does::Work(_) | Does::Code | Does::Set { is_code: true, .. } => Class::Soft,
            Does::Nothing | Does::Init(_) | Does::Set { .. } | Does::Branch(_) | Does::Any => {
                if ways.len() == 1 {
                    Class::Pass
                } else {
                    Class::Soft
                }
            }
            _ => Class::Hard,
        }
    }

    fn classify(&mut self) {
        self.classes = (0..self.steps.len()).map(|at| self.class(at)).collect();
        let mut to: HashMap<usize, usize> = HashMap::new();
        for start in self.order.clone() {
            let (mut way, mut seen) = (Vec::new(), HashSet::new());
            let mut at = start;
            while self.classes[at] == Class::Pass && !to.contains_key(&at) {
                if !seen.insert(at) {
                    // A loop in which nothing happens.
                    self.classes[at] = Class::Soft;
                    break;
                }
                way.push(at);
                at = self.steps[at].next[0];
            }
            let end = to.get(&at).copied().unwrap_or(at);
            to.extend(way.into_iter().filter(|w| *w != end).map(|w| (w, end)));
        }
        self.next = vec![Vec::new(); self.steps.len()];
        for at in &self.order {
            let ways = self.steps[*at].next.iter();
            let mut ways: Vec<usize> = ways.map(|n| to.get(n).copied().unwrap_or(*n)).collect();
            if !matches!(self.steps[*at].does, Does::Branch(_)) {
                let mut seen = HashSet::new();
                ways.retain(|way| seen.insert(*way));
            }
            self.next[*at] = ways;
        }
        self.order.retain(|at| self.classes[*at] != Class::Pass);
    }

    /// Divides code into regions that are entered at their first steps only.
    fn lead(&mut self) {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        for at in &self.order {
            for next in &self.next[*at] {
                before[*next].push(*at);
            }
        }
        let mut leader: Vec<Option<usize>> = vec![None; self.steps.len()];
        let soft: Vec<usize> =
            self.order.iter().copied().filter(|at| self.classes[*at] == Class::Soft).collect();
        loop {
            let mut is_done = true;
            for at in soft.iter().copied().filter(|at| leader[*at] != Some(*at)).collect::<Vec<_>>()
            {
                let new = self.leader(at, &before[at], &leader);
                is_done &= new == leader[at];
                leader[at] = new;
            }
            if is_done {
                break;
            }
        }
        self.leaders = leader;
        for at in soft {
            let first = self.leaders[at].unwrap_or(at);
            self.regions.entry(first).or_insert(Region::EMPTY).members.push(at);
        }
        for region in self.regions.values_mut() {
            let members: HashSet<usize> = region.members.iter().copied().collect();
            for at in &region.members {
                let step = &self.steps[*at];
                let is_code = match &step.does {
                    Does::Work(time) => {
                        region.execution = sum(region.execution, *time);
                        true
                    }
                    Does::Code | Does::Set { .. } => true,
                    _ => false,
                };
                if is_code && region.place.is_none() {
                    region.place = Some(step.place.clone());
                }
                for next in &self.next[*at] {
                    if !members.contains(next) && !region.exits.contains(next) {
                        region.exits.push(*next);
                    }
                }
            }
            region.is_kept = region.place.is_some() || region.exits.len() != 1;
        }
    }

    /// The first step of the region that a step belongs to, as far as it is known.
    fn leader(&self, at: usize, before: &[usize], leader: &[Option<usize>]) -> Option<usize> {
        let mut found = None;
        for previous in before {
            if self.classes[*previous] == Class::Hard {
                return Some(at);
            }
            match (found, leader[*previous]) {
                (None, first) => found = first,
                (Some(a), Some(b)) if a != b => return Some(at),
                _ => {}
            }
        }
        let first = found?;
        let is_same = self.steps[first].guard == self.steps[at].guard;
        Some(if is_same { first } else { at })
    }

    /// The step whose node stands for a step.
    fn target(&mut self, mut at: usize) -> usize {
        let mut seen = HashSet::new();
        while self.classes[at] == Class::Soft {
            let first = self.leaders[at].unwrap_or(at);
            let Some(region) = self.regions.get_mut(&first) else { break };
            at = first;
            if region.is_kept {
                break;
            }
            if !seen.insert(first) {
                region.is_kept = true;
                break;
            }
            at = region.exits[0];
        }
        at
    }

    fn nodes(mut self) -> (Vec<TaskNode>, Vec<Latest>) {
        let order = self.order.clone();
        let mut to: HashMap<usize, usize> = HashMap::new();
        // Twice: a region is kept if nothing but such regions follow it, which shows on the way.
        for _ in 0..2 {
            for next in order.iter().flat_map(|at| self.next[*at].clone()).collect::<Vec<_>>() {
                let target = self.target(next);
                to.insert(next, target);
            }
        }
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut count = 0;
        for at in &order {
            let size = match (self.classes[*at], self.regions.get(at)) {
                (Class::Hard, _) => 1,
                (_, Some(region)) if region.is_kept => {
                    1 + usize::from(region.place.is_some() && region.exits.len() > 1)
                }
                _ => continue,
            };
            numbers.insert(*at, count);
            count += size;
        }
        let number = |at: usize| numbers[&to.get(&at).copied().unwrap_or(at)];
        let (mut made, mut latest) = (Vec::with_capacity(count), Vec::new());
        for at in order.iter().filter(|at| numbers.contains_key(at)) {
            let step = &self.steps[*at];
            let guard = step.guard.map(|point| numbers[&point]);
            if let Some(region) = self.regions.get(at) {
                self.region(region, *at, guard, &number, &mut made);
                continue;
            }
            let next = self.next[*at].iter().map(|n| number(*n)).collect();
            if let Does::Latest { variable, is_write } = &step.does {
                let (node, variable) = (made.len(), variable.clone());
                latest.push(Latest { node, variable, is_write: *is_write });
            }
            made.push(TaskNode { kind: self.what(step), place: step.place.clone(), next, guard });
        }
        (made, latest)
    }

    fn region(
        &self,
        region: &Region,
        at: usize,
        guard: Option<usize>,
        number: &impl Fn(usize) -> usize,
        made: &mut Vec<TaskNode>,
    ) {
        let here = made.len();
        let mut next: Vec<usize> = region.exits.iter().map(|n| number(*n)).collect();
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            // It has no end.
            next.push(here);
        }
        let parts = region.exits.len() > 1;
        let place = region.place.clone().unwrap_or_else(|| self.steps[at].place.clone());
        if region.place.is_some() {
            let what = NodeKind::Fragment { execution: region.execution };
            let behind = if parts { vec![here + 1] } else { next.clone() };
            made.push(TaskNode { kind: what, place: place.clone(), next: behind, guard });
        }
        if region.place.is_none() || parts {
            made.push(TaskNode { kind: NodeKind::Any, place, next, guard });
        }
    }

    fn what(&self, step: &Raw) -> NodeKind {
        let read = |e: &Expression| self.numbered(e, step.base);
        match &step.does {
            Does::Start => NodeKind::Start,
            Does::End => NodeKind::End,
            Does::Point { kind, period, deadline } => NodeKind::Point {
                kind: *kind,
                period: read(period),
                deadline: deadline.as_ref().map(read),
            },
            Does::Gettime => NodeKind::Gettime,
            Does::Skip => NodeKind::Skip,
            Does::Run(task) => NodeKind::Run { task: *task },
            Does::Write { channel, waits } => NodeKind::Write { channel: *channel, waits: *waits },
            Does::Read { channel, waits } => NodeKind::Read { channel: *channel, waits: *waits },
            Does::Lock(resource) => NodeKind::Lock(*resource),
            Does::Take(resource) => NodeKind::Take(*resource),
            Does::Unlock(resource) => NodeKind::Unlock(*resource),
            Does::Held => NodeKind::Held,
            Does::Set { register, value, .. } => NodeKind::Set {
                register: self.slice.registers.get(register).copied().unwrap_or(0),
                value: read(value),
            },
            Does::Branch(condition) => NodeKind::Branch(read(condition)),
            Does::Work(execution) => NodeKind::Fragment { execution: *execution },
            Does::Code | Does::Latest { .. } => NodeKind::Fragment { execution: Interval::ZERO },
            Does::Nothing | Does::Init(_) | Does::Any | Does::Hold(_) | Does::Restore => {
                NodeKind::Any
            }
        }
    }

    /// An expression of the task's registers.
    fn numbered(&self, expression: &Expression, base: u32) -> Expression {
        match expression {
            Expression::Register(register) => {
                let known = self.slice.registers.get(&(base + u32::from(*register)));
                known.map_or(Expression::Unknown, |r| Expression::Register(*r))
            }
            Expression::Unary(operation, inner) => {
                Expression::Unary(*operation, Box::new(self.numbered(inner, base)))
            }
            Expression::Binary(operation, left, right) => Expression::Binary(
                *operation,
                Box::new(self.numbered(left, base)),
                Box::new(self.numbered(right, base)),
            ),
            _ => expression.clone(),
        }
    }
}

/// One time after another one.
fn sum(a: Interval, b: Interval) -> Interval {
    let add = |a: Span, b: Span| Span::from_ns(a.as_ns().saturating_add(b.as_ns()));
    let hi = a.hi.zip(b.hi).map(|(a, b)| add(a, b));
    Interval { lo: add(a.lo, b.lo), hi }
}
