//! From a task's steps to its control flow.

use super::codes;
use super::steps::{Count, Does, Step};
use crate::Sink;
use onbeat_model::diagnostic::{Diagnostic, Origin};
use onbeat_model::graph::{Binary, Expression, NodeKind, PointKind, TaskNode};
use std::collections::BTreeMap;

/// The control flow of a task.
#[derive(Default)]
pub(super) struct Flow {
    pub(super) nodes: Vec<TaskNode>,
    /// Per node, the step that it is of.
    pub(super) origins: Vec<Origin>,
    /// Per node, whether no deadline aborts it whatever is next.
    pub(super) unguarded: Vec<bool>,
    /// From an endless loop without a timing point to what stands behind it: ways that only an
    /// abort takes.
    pub(super) behind: Vec<(usize, usize)>,
    /// Endless loops that wait for nothing: where they begin.
    pub(super) busy: Vec<(usize, Origin)>,
    pub(super) registers: u16,
}

/// A way on, from the end of what stands there so far.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Exit {
    node: usize,
    /// Whether only an abort takes it.
    is_abort: bool,
}

/// A loop that is being built.
struct Loop {
    breaks: Vec<Exit>,
    /// How many locks are held around it.
    locks: usize,
}

/// Builds the control flow of one task.
pub(super) struct Builder<'a> {
    flow: Flow,
    open: Vec<Exit>,
    loops: Vec<Loop>,
    /// The resources that are held, and where they were locked.
    locks: Vec<usize>,
    /// How many critical blocks are around.
    critical: usize,
    /// How many nodes of a kind have a place already.
    places: BTreeMap<(u8, String), u32>,
    lines: &'a Lines,
    sink: &'a mut Sink,
}

/// Where the lines of a text begin.
pub(super) struct Lines(Vec<u32>);

impl Lines {
    pub(super) fn new(text: &str) -> Self {
        let ends = text.bytes().zip(1..).filter(|(octet, _)| *octet == b'\n').map(|(_, at)| at);
        Self(std::iter::once(0).chain(ends).collect())
    }
    /// The line, from 1, of an octet.
    fn of(&self, at: Origin) -> usize {
        self.0.partition_point(|start| *start <= at.start)
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(lines: &'a Lines, sink: &'a mut Sink) -> Self {
        Self {
            flow: Flow::default(),
            open: Vec::new(),
            loops: Vec::new(),
            locks: Vec::new(),
            critical: 0,
            places: BTreeMap::new(),
            lines,
            sink,
        }
    }

    /// The flow of all steps of a task.
    pub(super) fn build(mut self, steps: &[Step], at: Origin) -> Flow {
        self.add(NodeKind::Start, "start".to_owned(), at);
        self.steps(steps);
        if self.open.iter().any(|exit| !exit.is_abort) {
            self.open.retain(|exit| !exit.is_abort);
            self.add(NodeKind::End, "end".to_owned(), at);
        }
        self.flow
    }

    fn error(&mut self, message: &str, at: Origin, help: &str) {
        let wrong = Diagnostic::error(codes::FLOW, message, at, "this step").help(help);
        self.sink.push(wrong);
    }

    /// Adds a node behind all that is open.
    fn add(&mut self, what: NodeKind, place: String, at: Origin) -> usize {
        let node = self.flow.nodes.len();
        let waits = matches!(
            what,
            NodeKind::Lock(_) | NodeKind::Start | NodeKind::End | NodeKind::Point { .. }
        );
        for exit in std::mem::take(&mut self.open) {
            self.join(exit, node);
        }
        self.flow.nodes.push(TaskNode { kind: what, place, next: Vec::new(), guard: None });
        self.flow.origins.push(at);
        self.flow.unguarded.push(waits || self.critical > 0 || !self.locks.is_empty());
        self.open.push(Exit { node, is_abort: false });
        node
    }

    fn join(&mut self, exit: Exit, to: usize) {
        if exit.is_abort {
            self.flow.behind.push((exit.node, to));
        } else if !self.flow.nodes[exit.node].next.contains(&to) {
            self.flow.nodes[exit.node].next.push(to);
        }
    }

    /// Adds a node of a step, with its place: as stated or the line, and a number if there is
    /// another one of its kind.
    fn node(&mut self, what: NodeKind, step: &Step) -> usize {
        let kind = match what {
            NodeKind::Point { .. } => 0,
            NodeKind::Write { .. } | NodeKind::Read { .. } => 1,
            _ => 2,
        };
        let place = step.place.clone().unwrap_or_else(|| self.lines.of(step.at).to_string());
        let count = self.places.entry((kind, place.clone())).or_insert(0);
        *count += 1;
        let place = if *count > 1 { format!("{place}.{count}") } else { place };
        self.add(what, place, step.at)
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    fn step(&mut self, step: &Step) {
        match &step.what {
            Does::Work(execution) => {
                self.simple(NodeKind::Fragment { execution: *execution }, step)
            }
            Does::Write { channel, waits } => {
                if *waits {
                    self.no_waiting_in_a_lock(step);
                }
                self.simple(NodeKind::Write { channel: *channel, waits: *waits }, step);
            }
            Does::Read { channel, waits } => {
                self.no_waiting_in_a_lock(step);
                self.simple(NodeKind::Read { channel: *channel, waits: *waits }, step);
            }
            Does::Point { kind, period, deadline } => self.point(step, *kind, *period, *deadline),
            Does::Start(task) => self.simple(NodeKind::Run { task: *task }, step),
            Does::Skip => self.simple(NodeKind::Skip, step),
            Does::Gettime => self.simple(NodeKind::Gettime, step),
            Does::Break => self.leave(step),
            Does::Critical(steps) => {
                self.critical += 1;
                self.steps(steps);
                self.critical -= 1;
            }
            Does::Lock { resource, steps } => {
                self.node(NodeKind::Lock(*resource), step);
                self.locks.push(*resource);
                self.steps(steps);
                if !self.open.is_empty() {
                    self.node(NodeKind::Unlock(*resource), step);
                }
                self.locks.pop();
            }
            Does::Either(ways) => {
                let fork = Exit { node: self.node(NodeKind::Any, step), is_abort: false };
                let mut open = Vec::new();
                for way in ways {
                    self.open = vec![fork];
                    self.steps(way);
                    open.append(&mut self.open);
                }
                self.open = open;
            }
            Does::Loop { rounds, steps } => self.repeat(step, *rounds, steps),
        }
    }

    fn simple(&mut self, what: NodeKind, step: &Step) {
        self.node(what, step);
    }

    fn point(&mut self, step: &Step, kind: PointKind, period: i64, deadline: Option<i64>) {
        self.no_waiting_in_a_lock(step);
        if self.critical > 0 {
            let help = "end `critical` before the point: an abort waits for its end";
            self.error("a timing point inside `critical`", step.at, help);
        }
        let constant = Expression::Constant;
        let (period, deadline) = (constant(period), deadline.map(constant));
        self.node(NodeKind::Point { kind, period, deadline }, step);
    }

    /// What others wait for while a task waits has no bound on its own.
    fn no_waiting_in_a_lock(&mut self, step: &Step) {
        if !self.locks.is_empty() {
            let help = "end the `lock` before it: other tasks would wait for it as well";
            self.error("the task waits while it holds a lock", step.at, help);
        }
    }

    fn leave(&mut self, step: &Step) {
        let Some(around) = self.loops.last().map(|around| around.locks) else {
            let help = "move it into the `steps` of a loop, or remove it";
            return self.error("`break` outside a loop", step.at, help);
        };
        self.node(NodeKind::Any, step);
        for held in (around..self.locks.len()).rev() {
            self.node(NodeKind::Unlock(self.locks[held]), step);
        }
        let open = std::mem::take(&mut self.open);
        self.loops.last_mut().expect("a loop").breaks.extend(open);
    }

    fn repeat(&mut self, step: &Step, rounds: Count, steps: &[Step]) {
        let head = self.head(step, rounds, steps);
        let first = self.flow.nodes.len();
        let register = self.flow.registers.wrapping_sub(1);
        self.loops.push(Loop { breaks: Vec::new(), locks: self.locks.len() });
        self.steps(steps);
        if let Count::Times(_) = rounds
            && !self.open.is_empty()
        {
            let less = Expression::Binary(
                Binary::Subtract,
                Box::new(Expression::Register(register)),
                Box::new(Expression::Constant(1)),
            );
            self.node(NodeKind::Set { register, value: less }, step);
        }
        let back = head.unwrap_or(first);
        for exit in std::mem::take(&mut self.open) {
            self.join(exit, back);
        }
        self.open = self.loops.pop().expect("it was pushed").breaks;
        match (rounds, head) {
            (Count::Times(_) | Count::Unknown, Some(head)) => {
                self.open.push(Exit { node: head, is_abort: false });
            }
            _ => self.end_of_endless(step, back),
        }
    }

    /// The nodes before the first step of a loop: the one to which control comes back, if it is
    /// not that of the first step.
    fn head(&mut self, step: &Step, rounds: Count, steps: &[Step]) -> Option<usize> {
        match rounds {
            Count::Times(times) => {
                let register = self.flow.registers;
                self.flow.registers = register.saturating_add(1);
                let value = Expression::Constant(times);
                self.node(NodeKind::Set { register, value }, step);
                let (left, none) = (Expression::Register(register), Expression::Constant(0));
                let again = Expression::Binary(Binary::Greater, Box::new(left), Box::new(none));
                Some(self.node(NodeKind::Branch(again), step))
            }
            Count::Unknown => Some(self.node(NodeKind::Any, step)),
            // Each loop has a node of its own to which it comes back.
            Count::Ever => begins_with_loop(steps).then(|| self.node(NodeKind::Any, step)),
        }
    }

    /// An endless loop without a timing point is left by an abort, at the point behind it.
    fn end_of_endless(&mut self, step: &Step, from: usize) {
        let nodes = &self.flow.nodes[from..];
        let is_timed = nodes.iter().any(|node| matches!(node.kind, NodeKind::Point { .. }));
        if !is_timed && self.open.is_empty() {
            let waits = |node: &TaskNode| {
                matches!(node.kind, NodeKind::Read { .. } | NodeKind::Write { .. })
            };
            if !nodes.iter().any(waits) {
                self.flow.busy.push((from, step.at));
            }
            self.open.push(Exit { node: from, is_abort: true });
        }
    }
}

/// Whether the first node of steps is one to which a loop in them comes back.
fn begins_with_loop(steps: &[Step]) -> bool {
    match steps.first().map(|step| &step.what) {
        Some(Does::Loop { rounds: Count::Ever | Count::Unknown, .. }) => true,
        Some(Does::Critical(steps)) => begins_with_loop(steps),
        _ => false,
    }
}
