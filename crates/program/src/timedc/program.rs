//! How the functions of a unit call each other.

use super::construct::{Construct, Constructs};
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
        self.close(&mut set, |site| (site.callee, site.caller));
        set
    }

    /// These functions and all that they call, directly or not.
    pub(super) fn callees(&self, mut set: HashSet<usize>) -> HashSet<usize> {
        self.close(&mut set, |site| (site.caller, site.callee));
        set
    }

    fn close(&self, set: &mut HashSet<usize>, edge: impl Fn(&Site<'_>) -> (usize, usize)) {
        loop {
            let before = set.len();
            for site in self.sites.iter().filter(|s| !s.starts) {
                let (from, to) = edge(site);
                if set.contains(&from) {
                    set.insert(to);
                }
            }
            if set.len() == before {
                return;
            }
        }
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
