//! Which variables and branches have to do with a task's timing.

use super::inline::{Does, Raw};
use onbeat_model::graph::Expression;
use std::collections::{HashMap, HashSet};

/// What matters of a task's steps.
pub(super) struct Slice {
    /// Registers that decide where control goes or how long delays are, numbered.
    pub registers: HashMap<u32, u16>,
    /// Steps at which ways part that differ in time or channels.
    pub parts: HashSet<usize>,
}

/// What comes next that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Not looked at yet.
    Unset,
    One(usize),
    Many,
}

/// Stands for a way on which nothing that matters ever comes.
const NEVER: usize = usize::MAX;

/// The registers of an expression.
fn registers(expression: &Expression, base: u32) -> impl Iterator<Item = u32> {
    expression.registers().map(move |register| base + u32::from(register))
}

/// Whether a part of it is unknown, and so is it.
fn is_unknown(expression: &Expression) -> bool {
    expression.parts().contains(&&Expression::Unknown)
}

fn expressions(does: &mut Does) -> Vec<&mut Expression> {
    match does {
        Does::Point { period, deadline, .. } => {
            std::iter::once(period).chain(deadline.as_mut()).collect()
        }
        Does::Set { value, .. } => vec![value],
        Does::Branch(condition) => vec![condition],
        _ => Vec::new(),
    }
}

/// Makes unknown what depends on a register that never has a known value.
fn forget(steps: &mut [Raw]) {
    let mut known: HashSet<u32> = HashSet::new();
    let sets: Vec<(u32, Vec<u32>)> = steps
        .iter()
        .filter_map(|step| match &step.does {
            Does::Set { register, value, .. } if !is_unknown(value) => {
                Some((*register, registers(value, step.base).collect()))
            }
            _ => None,
        })
        .collect();
    loop {
        let before = known.len();
        for (register, of) in &sets {
            if of.iter().all(|r| known.contains(r)) {
                known.insert(*register);
            }
        }
        if known.len() == before {
            break;
        }
    }
    for step in steps {
        let base = step.base;
        for expression in expressions(&mut step.does) {
            let is_lost = registers(expression, base).any(|r| !known.contains(&r));
            if is_lost || is_unknown(expression) {
                *expression = Expression::Unknown;
            }
        }
        match &step.does {
            Does::Branch(Expression::Unknown) => step.does = Does::Any,
            Does::Set { register, is_code, .. } if !known.contains(register) => {
                step.does = if *is_code { Does::Code } else { Does::Nothing };
            }
            _ => {}
        }
    }
}

/// Finds what matters. None if there are too many registers.
pub(super) fn slice(steps: &mut [Raw], reachable: &HashSet<usize>) -> Option<Slice> {
    forget(steps);
    let mut order: Vec<usize> = reachable.iter().copied().collect();
    order.sort_unstable();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for at in &order {
        for next in &steps[*at].next {
            before[*next].push(*at);
        }
    }
    let mut wanted: HashSet<u32> = HashSet::new();
    let mut parts: HashSet<usize> = HashSet::new();
    loop {
        let count = (wanted.len(), parts.len());
        let solid = |at: usize| match &steps[at].does {
            Does::Set { register, .. } => wanted.contains(register),
            does => is_solid(does) || parts.contains(&at),
        };
        let next = nexts(steps, &order, &before, solid);
        let parting = |at: &usize| {
            let mut ways = steps[*at].next.iter();
            next[*at] == Next::Many && ways.any(|n| matches!(next[*n], Next::One(_)))
        };
        let more: Vec<usize> = order.iter().copied().filter(parting).collect();
        parts.extend(more);
        for at in &order {
            let step = &steps[*at];
            match &step.does {
                Does::Point { period, deadline, .. } => {
                    for length in std::iter::once(period).chain(deadline) {
                        wanted.extend(registers(length, step.base));
                    }
                }
                Does::Branch(condition) if parts.contains(at) => {
                    wanted.extend(registers(condition, step.base));
                }
                Does::Set { register, value, .. } if wanted.contains(register) => {
                    wanted.extend(registers(value, step.base));
                }
                _ => {}
            }
        }
        if count == (wanted.len(), parts.len()) {
            break;
        }
    }
    let mut sorted: Vec<u32> = wanted.into_iter().collect();
    sorted.sort_unstable();
    let numbered = sorted.into_iter().enumerate();
    let registers = numbered.map(|(n, r)| Some((r, u16::try_from(n).ok()?)));
    Some(Slice { registers: registers.collect::<Option<_>>()?, parts })
}

/// Whether a step is seen from outside, or takes time.
fn is_solid(does: &Does) -> bool {
    !matches!(
        does,
        Does::Nothing | Does::Code | Does::Init(_) | Does::Set { .. } | Does::Branch(_) | Does::Any
    )
}

/// What comes next of what is solid from each step on, the step itself included.
fn nexts(
    steps: &[Raw],
    order: &[usize],
    before: &[Vec<usize>],
    solid: impl Fn(usize) -> bool,
) -> Vec<Next> {
    let mut found = vec![Next::Unset; steps.len()];
    let mut open: Vec<usize> = Vec::new();
    for at in order.iter().copied().filter(|at| solid(*at)) {
        found[at] = Next::One(at);
        open.push(at);
    }
    spread(steps, before, &solid, &mut found, open);
    let endless: Vec<usize> =
        order.iter().copied().filter(|at| found[*at] == Next::Unset).collect();
    for at in &endless {
        found[*at] = Next::One(NEVER);
    }
    spread(steps, before, &solid, &mut found, endless);
    found
}

fn spread(
    steps: &[Raw],
    before: &[Vec<usize>],
    solid: &impl Fn(usize) -> bool,
    found: &mut [Next],
    mut open: Vec<usize>,
) {
    while let Some(at) = open.pop() {
        for previous in before[at].iter().copied().filter(|p| !solid(*p)) {
            let ways = steps[previous].next.iter().map(|n| found[*n]);
            let all = ways.fold(Next::Unset, |all, more| match (all, more) {
                (Next::Unset, other) | (other, Next::Unset) => other,
                (Next::One(a), Next::One(b)) if a == b => all,
                _ => Next::Many,
            });
            if all != found[previous] {
                found[previous] = all;
                open.push(previous);
            }
        }
    }
}
