//! Loops that wait for somebody else: nothing that they do themselves decides when they end.

use super::syntax::{bare, walk};
use super::unit::{Function, Unit};
use std::collections::HashSet;
use tree_sitter::Node;

/// Calls that change nothing a loop could end by, by the beginnings of their names.
const STILL: [&str; 10] = [
    "__atomic_",
    "__builtin_ia32_pause",
    "__sync_",
    "_mm_pause",
    "atomic_",
    "cpu_relax",
    "pthread_testcancel",
    "pthread_yield",
    "sched_yield",
    "thrd_yield",
];

/// What is assigned where, and from what.
struct Assignment<'t> {
    name: &'t str,
    /// None: it changes by itself (`n++`, `n -= 2`).
    source: Option<Node<'t>>,
}

/// Whether only others can end a loop: it has conditions, calls nothing that may change them, and
/// no variable in them gets anything in it but what others may have changed.
pub(super) fn waits<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> bool {
    let (mut conditions, mut assignments) = (Vec::new(), Vec::new());
    let mut is_still = true;
    walk(node, |inner| {
        let field = |name| inner.child_by_field_name(name);
        match inner.kind() {
            "call_expression" => {
                let callee = unit.callee(inner).unwrap_or("");
                is_still &= STILL.iter().any(|still| callee.starts_with(still));
            }
            "assignment_expression" => {
                let is_plain = field("operator").is_none_or(|o| unit.words(o) == "=");
                let name = field("left").and_then(|left| base(unit, left));
                let source = field("right").filter(|_| is_plain);
                assignments.extend(name.map(|name| Assignment { name, source }));
            }
            "update_expression" => {
                let name = field("argument").and_then(|argument| base(unit, argument));
                assignments.extend(name.map(|name| Assignment { name, source: None }));
            }
            "init_declarator" => {
                let name = field("declarator").and_then(|declarator| base(unit, declarator));
                let source = field("value");
                assignments.extend(name.map(|name| Assignment { name, source }));
            }
            _ => {}
        }
        if !matches!(inner.kind(), "call_expression") {
            conditions.extend(field("condition").filter(|c| unit.constant(*c).is_none()));
        }
        true
    });
    if !is_still || conditions.is_empty() {
        return false;
    }
    let moving = moving(unit, function, &assignments);
    !conditions.iter().any(|condition| reads(unit, *condition).any(|name| moving.contains(name)))
}

/// The variables that get another value from round to round by what the loop does.
fn moving<'t>(
    unit: &Unit<'t>,
    function: &Function<'t>,
    assignments: &[Assignment<'t>],
) -> HashSet<&'t str> {
    let mut moving = HashSet::new();
    loop {
        let before = moving.len();
        for Assignment { name, source } in assignments {
            let moves = source.is_none_or(|source| {
                let from: Vec<&str> = reads(unit, source).collect();
                from.iter().any(|n| n == name || moving.contains(n))
                    || unit.constant(source).is_some()
                    || !looks_outside(unit, function, source)
            });
            if moves {
                moving.insert(*name);
            }
        }
        if moving.len() == before {
            return moving;
        }
    }
}

/// The variable that an expression is, or is a part of.
fn base<'t>(unit: &Unit<'t>, node: Node<'t>) -> Option<&'t str> {
    let mut node = bare(node);
    while node.kind() != "identifier" {
        let inner =
            ["argument", "declarator", "left"].iter().find_map(|f| node.child_by_field_name(f));
        node = bare(inner?);
    }
    Some(unit.words(node))
}

/// All names in an expression.
fn reads<'t>(unit: &Unit<'t>, node: Node<'t>) -> impl Iterator<Item = &'t str> {
    let mut names = Vec::new();
    walk(node, |inner| {
        if inner.kind() == "identifier" {
            names.push(unit.words(inner));
        }
        true
    });
    names.into_iter()
}

/// Whether an expression reads what others may write: a global variable, or through a pointer.
fn looks_outside<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> bool {
    let mut found = false;
    walk(node, |inner| {
        found |= match inner.kind() {
            "pointer_expression" | "subscript_expression" | "field_expression" => true,
            "call_expression" => true,
            "identifier" => {
                let local = unit.resolve(function, unit.words(inner), inner.start_byte());
                local.is_none_or(|local| local.is_static)
            }
            _ => false,
        };
        true
    });
    found
}
