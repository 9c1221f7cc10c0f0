//! How the functions of a unit call each other.

use super::construct::{Construct, Constructs};
use super::effort::look;
use super::unit::Unit;
use std::collections::{HashMap, HashSet};
use tree_sitter::Node;

/// A call of a function of the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'t> {
    pub call: Node<'t>,
    pub caller: usize,
    pub callee: usize,
    /// The call starts a task.
    pub starts: bool,
}

/// The calls of a unit.
#[derive(Debug, Default)]
pub(super) struct Program<'t> {
    pub sites: Vec<Site<'t>>,
    /// By the call's node.
    pub by_call: HashMap<usize, usize>,
    /// Which functions each one calls, and which call it, without starts of tasks.
    called: HashMap<usize, Vec<usize>>,
    calling: HashMap<usize, Vec<usize>>,
    /// Functions in which control may come to a timing point, their own or a called one's.
    with_points: HashSet<usize>,
}

/// Reads the calls.
pub(super) fn read<'t>(unit: &Unit<'t>, constructs: &Constructs<'t>) -> Program<'t> {
    let mut by_name = HashMap::new();
    for (index, function) in unit.functions.iter().enumerate() {
        by_name.entry(function.name).or_insert(index);
    }
    let mut program = Program::default();
    for (caller, function) in unit.functions.iter().enumerate() {
        super::syntax::walk(function.body, |node| {
            if node.kind() == "call_expression"
                && let Some(name) = unit.callee(node)
                && let Some(callee) = by_name.get(name).copied()
                && unit.resolve(function, name, node.start_byte()).is_none()
            {
                let construct = constructs.calls.get(&node.id());
                let starts = matches!(construct, Some((_, Construct::Start(_))));
                program.by_call.insert(node.id(), program.sites.len());
                program.sites.push(Site { call: node, caller, callee, starts });
                if !starts {
                    program.called.entry(caller).or_default().push(callee);
                    program.calling.entry(callee).or_default().push(caller);
                }
            }
            !matches!(node.kind(), "sizeof_expression" | "alignof_expression")
        });
    }
    let own: HashSet<usize> = constructs.points.iter().map(|p| p.function).collect();
    program.with_points = program.callers(own);
    program
}

impl Program<'_> {
    /// These functions and all that call them, directly or not.
    pub(super) fn callers(&self, mut set: HashSet<usize>) -> HashSet<usize> {
        close(&mut set, &self.calling);
        set
    }

    /// These functions and all that they call, directly or not.
    pub(super) fn callees(&self, mut set: HashSet<usize>) -> HashSet<usize> {
        close(&mut set, &self.called);
        set
    }

    /// The functions, each behind those that it calls, as far as they do not call each other.
    pub(super) fn callees_first(&self, count: usize) -> Vec<usize> {
        let (mut seen, mut order) = (vec![false; count], Vec::new());
        for root in 0..count {
            let mut open = vec![(root, 0)];
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            while let Some((function, at)) = open.last_mut() {
                let callees = self.called.get(function).map_or(&[][..], Vec::as_slice);
                match callees.get(*at) {
                    Some(callee) => {
                        *at += 1;
                        if !std::mem::replace(&mut seen[*callee], true) {
                            open.push((*callee, 0));
                        }
                    }
                    None => {
                        order.push(*function);
                        open.pop();
                    }
                }
            }
        }
        order
    }

    /// The function of the unit that a call calls, unless it starts a task.
    pub(super) fn callee(&self, call: Node<'_>) -> Option<usize> {
        let site = &self.sites[*self.by_call.get(&call.id())?];
        (!site.starts).then_some(site.callee)
    }

    /// Whether control may come to a timing point in a function.
    pub(super) fn is_with_points(&self, function: usize) -> bool {
        self.with_points.contains(&function)
    }

    /// Whether a call may come to a timing point.
    pub(super) fn has_points(&self, call: Node<'_>) -> bool {
        self.callee(call).is_some_and(|f| self.with_points.contains(&f))
    }
}

/// Adds all that comes of what is in a set, step by step.
fn close(set: &mut HashSet<usize>, next: &HashMap<usize, Vec<usize>>) {
    let mut open: Vec<usize> = set.iter().copied().collect();
    while let Some(now) = open.pop() {
        for to in next.get(&now).into_iter().flatten() {
            look(1);
            if set.insert(*to) {
                open.push(*to);
            }
        }
    }
}
