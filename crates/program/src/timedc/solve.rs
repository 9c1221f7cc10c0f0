//! Data flow over graphs of steps.

use super::effort::look;
use super::flow::Step;
use std::collections::HashSet;

/// Nodes that control can come to.
pub(super) fn reachable(steps: &[Step<'_>]) -> HashSet<usize> {
    reachable_from(steps, 0)
}

/// Nodes that control can come to from one of them.
pub(super) fn reachable_from(steps: &[Step<'_>], first: usize) -> HashSet<usize> {
    let (mut seen, mut open) = (HashSet::from([first]), vec![first]);
    while let Some(node) = open.pop() {
        for next in &steps[node].next {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen
}

/// From where each node is come to.
pub(super) fn previous(steps: &[Step<'_>]) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); steps.len()];
    for (index, step) in steps.iter().enumerate() {
        for next in &step.next {
            found[*next].push(index);
        }
    }
    found
}

/// Values at the beginning of each node from those of its successors: `transfer` gets the node and
/// the united values of what follows it.
pub(super) fn backward<T: Clone + PartialEq + Default>(
    steps: &[Step<'_>],
    unite: impl Fn(&mut T, &T),
    transfer: impl Fn(usize, T) -> T,
) -> Vec<T> {
    let before = previous(steps);
    let mut values = vec![T::default(); steps.len()];
    let mut open: Vec<usize> = (0..steps.len()).collect();
    let mut is_open = vec![true; steps.len()];
    while let Some(node) = open.pop() {
        look(1);
        is_open[node] = false;
        let mut behind = T::default();
        for next in &steps[node].next {
            unite(&mut behind, &values[*next]);
        }
        let value = transfer(node, behind);
        if value != values[node] {
            values[node] = value;
            for previous in &before[node] {
                if !std::mem::replace(&mut is_open[*previous], true) {
                    open.push(*previous);
                }
            }
        }
    }
    values
}

/// Values at the beginning of each node that control can come to, from those of its predecessors.
/// `transfer` makes the value behind a node of the one before it.
pub(super) fn forward<T: Clone + PartialEq>(
    steps: &[Step<'_>],
    entry: T,
    unite: impl Fn(&mut T, &T),
    transfer: impl Fn(usize, &T) -> T,
) -> Vec<Option<T>> {
    let mut values: Vec<Option<T>> = vec![None; steps.len()];
    values[0] = Some(entry);
    let mut open = vec![0];
    while let Some(node) = open.pop() {
        look(1);
        let Some(value) = &values[node] else { continue };
        let behind = transfer(node, value);
        for next in &steps[node].next {
            let new = match &values[*next] {
                None => behind.clone(),
                Some(old) => {
                    let mut united = old.clone();
                    unite(&mut united, &behind);
                    united
                }
            };
            if values[*next].as_ref() != Some(&new) {
                values[*next] = Some(new);
                open.push(*next);
            }
        }
    }
    values
}

/// The nodes that lie on a cycle of nodes for which `within` holds.
pub(super) fn cyclic(steps: &[Step<'_>], within: impl Fn(usize) -> bool) -> HashSet<usize> {
    // Strongly connected components (Tarjan's algorithm, without recursion).
    let mut state = Components {
        order: vec![usize::MAX; steps.len()],
        low: vec![0; steps.len()],
        on_stack: vec![false; steps.len()],
        stack: Vec::new(),
        next: 0,
        found: HashSet::new(),
    };
    for root in 0..steps.len() {
        if within(root) && state.order[root] == usize::MAX {
            state.visit(steps, root, &within);
        }
    }
    state.found
}

struct Components {
    order: Vec<usize>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    next: usize,
    found: HashSet<usize>,
}

impl Components {
    fn enter(&mut self, node: usize) {
        self.order[node] = self.next;
        self.low[node] = self.next;
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node] = true;
    }

    fn visit(&mut self, steps: &[Step<'_>], root: usize, within: &impl Fn(usize) -> bool) {
        let mut calls = vec![(root, 0)];
        self.enter(root);
        while let Some((node, at)) = calls.pop() {
            if let Some(next) = steps[node].next.get(at).copied() {
                calls.push((node, at + 1));
                if !within(next) {
                    continue;
                }
                if self.order[next] == usize::MAX {
                    self.enter(next);
                    calls.push((next, 0));
                } else if self.on_stack[next] {
                    self.low[node] = self.low[node].min(self.order[next]);
                }
                continue;
            }
            if let Some((above, _)) = calls.last() {
                self.low[*above] = self.low[*above].min(self.low[node]);
            }
            if self.low[node] == self.order[node] {
                self.leave(steps, node);
            }
        }
    }

    fn leave(&mut self, steps: &[Step<'_>], root: usize) {
        let from = self.stack.iter().rposition(|n| *n == root).unwrap_or(0);
        let members = self.stack.split_off(from);
        let is_cycle = members.len() > 1 || steps[root].next.contains(&root);
        for member in members {
            self.on_stack[member] = false;
            if is_cycle {
                self.found.insert(member);
            }
        }
    }
}
