//! Static analysis of a task's graph: what holds of its nodes whatever the time.

use super::order::{Order, targets};
use onbeat_model::graph::{Expression, Graph, NodeKind, Task, TaskNode};
use std::collections::BTreeSet;

/// A channel that a task writes or reads. The start of another task is a message as well: task *t*
/// reads it from channel number "channels + *t*".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) channel: usize,
    pub(super) writes: bool,
}

/// A task and what holds of its nodes.
#[derive(Debug)]
pub(super) struct TaskStatics<'a> {
    pub(super) task: &'a Task,
    pub(super) order: Order,
    pub(super) ends: Vec<Endpoint>,
    /// By node: its channel end, if it is one.
    pub(super) end: Vec<Option<usize>>,
    /// By node: which ends it and what may follow have.
    pub(super) uses: Vec<Vec<bool>>,
    /// By node: of which registers it and what may follow use the values, and, behind them, whether
    /// they use the origin.
    pub(super) lives: Vec<Vec<bool>>,
}

/// What happens in a loop.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) registers: Vec<usize>,
    pub(super) ends: Vec<usize>,
    pub(super) points: Vec<usize>,
    pub(super) skips: bool,
    pub(super) moves_origin: bool,
}

impl<'a> TaskStatics<'a> {
    pub(super) fn of(graph: &'a Graph, index: usize) -> Self {
        let task = &graph.tasks[index];
        let mut ends: Vec<Endpoint> = Vec::new();
        let mut number = |end: Endpoint| {
            ends.iter().position(|e| *e == end).unwrap_or_else(|| {
                ends.push(end);
                ends.len() - 1
            })
        };
        let start = |task: usize| graph.channels.len() + task;
        let end = task.nodes.iter().map(|node| match node.kind {
            NodeKind::Write { channel, .. } => Some(number(Endpoint { channel, writes: true })),
            NodeKind::Read { channel, .. } => Some(number(Endpoint { channel, writes: false })),
            NodeKind::Run { task } => Some(number(Endpoint { channel: start(task), writes: true })),
            NodeKind::Start if !task.is_first => {
                Some(number(Endpoint { channel: start(index), writes: false }))
            }
            _ => None,
        });
        let end: Vec<Option<usize>> = end.collect();
        let uses = uses(task, &end, ends.len());
        let lives = lives(task);
        Self { task, order: Order::of(task, &BTreeSet::new()), ends, end, uses, lives }
    }

    /// The number of one of its ends.
    pub(super) fn number(&self, end: Endpoint) -> Option<usize> {
        self.ends.iter().position(|e| *e == end)
    }

    /// What happens in the loop with this head, by its position.
    pub(super) fn body(&self, head: u32) -> Body {
        let mut body = Body::default();
        for (index, node) in self.task.nodes.iter().enumerate() {
            if !self.order.loops(index).contains(&head) {
                continue;
            }
            body.ends.extend(self.end[index]);
            match &node.kind {
                NodeKind::Set { register, .. } => body.registers.push(usize::from(*register)),
                NodeKind::Point { .. } => {
                    body.points.push(index);
                    body.moves_origin = true;
                }
                NodeKind::Gettime => body.moves_origin = true,
                NodeKind::Skip => body.skips = true,
                _ => {}
            }
        }
        body
    }
}

fn uses(task: &Task, end: &[Option<usize>], ends: usize) -> Vec<Vec<bool>> {
    let mut uses = vec![vec![false; ends]; task.nodes.len()];
    for (node, end) in end.iter().enumerate() {
        end.iter().for_each(|end| uses[node][*end] = true);
    }
    let mut changed = ends > 0;
    while changed {
        changed = false;
        for node in (0..task.nodes.len()).rev() {
            for to in targets(task, node) {
                let after = uses[to].clone();
                for (uses, after) in uses[node].iter_mut().zip(after) {
                    changed |= after && !*uses;
                    *uses |= after;
                }
            }
        }
    }
    uses
}

/// What a node uses itself.
fn used(task: &Task, node: &TaskNode) -> Vec<bool> {
    let origin = usize::from(task.registers);
    let mut used = vec![false; origin + 1];
    let mut note = |expression: &Expression| {
        expression.registers().for_each(|register| used[usize::from(register)] = true);
    };
    let guard = node.guard.map(|point| &task.nodes[point].kind);
    if let Some(NodeKind::Point { deadline: Some(deadline), .. }) = guard {
        note(deadline);
    }
    match &node.kind {
        NodeKind::Point { period, deadline, .. } => {
            note(period);
            deadline.iter().for_each(note);
        }
        NodeKind::Set { value, .. } => note(value),
        NodeKind::Branch(condition) => note(condition),
        _ => {}
    }
    used[origin] = guard.is_some() || matches!(node.kind, NodeKind::Point { .. });
    used
}

fn lives(task: &Task) -> Vec<Vec<bool>> {
    let origin = usize::from(task.registers);
    let mut lives: Vec<Vec<bool>> = task.nodes.iter().map(|node| used(task, node)).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for node in (0..task.nodes.len()).rev() {
            let set = match &task.nodes[node].kind {
                NodeKind::Set { register, .. } => Some(usize::from(*register)),
                NodeKind::Gettime => Some(origin),
                _ => None,
            };
            for to in targets(task, node) {
                for value in (0..=origin).filter(|value| Some(*value) != set) {
                    changed |= lives[to][value] && !lives[node][value];
                    lives[node][value] |= lives[to][value];
                }
            }
        }
    }
    lives
}
