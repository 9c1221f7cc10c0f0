//! Which firm or hard point guards which code, and where guards begin and end.

use super::codes;
use super::construct::{Constructs, Deadline, Length};
use super::effort::look;
use super::flow::{Flow, StepKind};
use super::program::Program;
use super::solve::{backward, cyclic, forward};
use super::syntax::{children, walk};
use super::unit::{Function, Unit};
use onbeat_model::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tree_sitter::Node;

/// What may be the next timing point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    Point(usize),
    /// One in a called function.
    Called,
    /// None: the function ends.
    End,
}

/// The guard at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Guard {
    None,
    Of(usize),
    /// Points with different deadlines.
    Many,
}

/// What to write at a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Begin(usize),
    Renew(usize),
    End,
}

/// The guards of a function.
#[derive(Debug, Default)]
pub(super) struct Guards {
    pub next: Vec<BTreeSet<Next>>,
    pub at: Vec<Guard>,
    /// By slot.
    pub actions: BTreeMap<usize, Action>,
    /// Per node: which variables that timing arguments or network channels need have values for
    /// certain.
    pub assigned: Vec<Option<BTreeSet<usize>>>,
    /// Nodes on loops without a timing point.
    busy: HashSet<usize>,
}

/// What may be next from each step.
pub(super) fn next_points(program: &Program<'_>, flow: &Flow<'_>) -> Vec<BTreeSet<Next>> {
    let mut steps = flow.steps.clone();
    flow.entered.iter().for_each(|(before, body)| steps[*before].next = vec![*body]);
    backward(
        &steps,
        |all, more: &BTreeSet<Next>| all.extend(more.iter().copied()),
        |node, behind| match flow.steps[node].kind {
            StepKind::Point(p) => BTreeSet::from([Next::Point(p)]),
            StepKind::Exit => BTreeSet::from([Next::End]),
            StepKind::Call(call) if program.has_points(call) => BTreeSet::from([Next::Called]),
            _ => behind,
        },
    )
}

/// Which variables have values for certain, of those that are asked for.
fn assigned(
    function: &Function<'_>,
    flow: &Flow<'_>,
    asked: &BTreeSet<usize>,
) -> Vec<Option<BTreeSet<usize>>> {
    let is_asked = |v: &usize| asked.contains(v);
    let parameters = function.variables.iter().enumerate().filter(|(_, v)| v.is_parameter);
    forward(
        &flow.steps,
        parameters.map(|(index, _)| index).filter(is_asked).collect::<BTreeSet<usize>>(),
        |all, more| all.retain(|v| more.contains(v)),
        |node, before| {
            let mut now = before.clone();
            look(now.len());
            match flow.steps[node].kind {
                StepKind::Assign(variable) if asked.contains(&variable) => {
                    now.insert(variable);
                }
                StepKind::Declare(variable) => {
                    now.remove(&variable);
                }
                _ => {}
            }
            now
        },
    )
}

/// The local variables, without those of static duration, in an expression.
pub(super) fn locals<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> Vec<usize> {
    let mut found = Vec::new();
    walk(node, |inner| {
        if inner.kind() == "identifier"
            && let Some(index) = unit.resolve_index(function, unit.words(inner), inner.start_byte())
        {
            found.push(index);
        }
        !matches!(inner.kind(), "sizeof_expression" | "alignof_expression")
    });
    found.sort_unstable();
    found.dedup();
    found
}

/// The point whose guard is in force at each step, as the guards are written.
pub(super) fn in_force(
    program: &Program<'_>,
    flow: &Flow<'_>,
    guards: &Guards,
) -> Vec<Option<usize>> {
    let behind = |node: usize, before: &BTreeSet<Guard>| match flow.steps[node].kind {
        StepKind::Point(_) => BTreeSet::from([Guard::None]),
        StepKind::Call(call) if program.has_points(call) => BTreeSet::from([Guard::None]),
        StepKind::Slot(slot) => match guards.actions.get(&slot) {
            Some(Action::Begin(point) | Action::Renew(point)) => {
                BTreeSet::from([Guard::Of(*point)])
            }
            Some(Action::End) => BTreeSet::from([Guard::None]),
            None => before.clone(),
        },
        _ => before.clone(),
    };
    let entry = BTreeSet::from([Guard::None]);
    let unite = |all: &mut BTreeSet<Guard>, more: &BTreeSet<Guard>| all.extend(more);
    let found = forward(&flow.steps, entry, unite, behind);
    let point = |(node, before): (usize, Option<BTreeSet<Guard>>)| {
        // A statement begins when what is written before it has been done.
        let now = behind(node, &before?);
        match now.first()? {
            Guard::Of(point) if now.len() == 1 => Some(*point),
            // It is in force on some ways only, as nothing runs here: on the others who is late is
            // not aborted, and on these who is late was aborted before.
            _ => None,
        }
    };
    found.into_iter().enumerate().map(point).collect()
}

/// Finds the guards of one function.
pub(super) struct Finder<'u, 't> {
    pub unit: &'u Unit<'t>,
    pub constructs: &'u Constructs<'t>,
    pub program: &'u Program<'t>,
    pub function: &'u Function<'t>,
    pub flow: &'u Flow<'t>,
    /// The function's variables that are ends of network channels.
    pub ends: Vec<usize>,
    pub diagnostics: Vec<Diagnostic>,
}

impl<'t> Finder<'_, 't> {
    pub(super) fn find(&mut self) -> Guards {
        let mut guards = Guards {
            next: next_points(self.program, self.flow),
            assigned: assigned(self.function, self.flow, &self.asked()),
            busy: cyclic(&self.flow.steps, |n| {
                !matches!(self.flow.steps[n].kind, StepKind::Point(_))
            }),
            ..Guards::default()
        };
        guards.at = (0..self.flow.steps.len()).map(|n| self.guard(n, &guards)).collect();
        self.report_conflicts(&guards);
        guards.actions = self.actions(&guards);
        guards
    }

    /// The variables whose values decide: of timing arguments, and ends of network channels.
    fn asked(&self) -> BTreeSet<usize> {
        let mut asked: BTreeSet<usize> = self.ends.iter().copied().collect();
        for step in &self.flow.steps {
            let StepKind::Point(point) = step.kind else { continue };
            let point = &self.constructs.points[point];
            let deadline = match point.deadline {
                Deadline::Length(length) => Some(length.node),
                Deadline::Same | Deadline::None(_) => None,
            };
            for argument in std::iter::once(point.period.node).chain(deadline) {
                asked.extend(locals(self.unit, self.function, argument));
            }
        }
        asked
    }

    /// The guarding points among those that may be next.
    fn guarding(&self, next: &BTreeSet<Next>) -> Vec<usize> {
        let points = next.iter().filter_map(|n| match n {
            Next::Point(p) => Some(*p),
            _ => None,
        });
        points.filter(|p| self.constructs.points[*p].guard().is_some()).collect()
    }

    /// Two deadlines are the same if they are the same number, or the same expression of the same
    /// variables.
    fn same(&self, a: usize, b: usize) -> bool {
        let length = |p: usize| self.constructs.points[p].guard();
        let (Some(a), Some(b)) = (length(a), length(b)) else { return false };
        match (a.constant_ns, b.constant_ns) {
            (Some(a), Some(b)) => a == b,
            (None, None) => {
                let text = |l: &Length<'t>| -> String {
                    self.unit.words(l.node).split_whitespace().collect()
                };
                let names = |l: &Length<'t>| locals(self.unit, self.function, l.node);
                text(&a) == text(&b) && names(&a) == names(&b)
            }
            _ => false,
        }
    }

    fn guard(&self, node: usize, guards: &Guards) -> Guard {
        let points = self.guarding(&guards.next[node]);
        let Some(first) = points.first().copied() else { return Guard::None };
        let scale = |p: usize| self.constructs.points[p].unit;
        let is_one = |p: &usize| {
            self.same(first, *p)
                && (self.constructs.points[first].guard().is_some_and(|g| g.constant_ns.is_some())
                    || scale(first) == scale(*p))
        };
        if !points.iter().all(is_one) {
            return Guard::Many;
        }
        match self.is_ready(first, node, guards) {
            true => Guard::Of(first),
            false => Guard::None,
        }
    }

    /// Whether the deadline has a value at a step, and so have the network channels' ends that the
    /// function declares around the point: it cannot continue without them.
    fn is_ready(&self, point: usize, node: usize, guards: &Guards) -> bool {
        let Some(deadline) = self.constructs.points[point].guard() else { return false };
        let at = self.flow.steps[node].place.start;
        let Some(assigned) = &guards.assigned[node] else { return false };
        let has_value = |v: usize| {
            let variable = &self.function.variables[v];
            variable.scope.contains(&at) && (variable.is_static || assigned.contains(&v))
        };
        let place = self.constructs.points[point].period.node.start_byte();
        let is_end = |v: &usize| {
            let variable = &self.function.variables[*v];
            variable.scope.contains(&place)
        };
        locals(self.unit, self.function, deadline.node).into_iter().all(has_value)
            && self.ends.iter().copied().filter(is_end).all(has_value)
    }

    /// Whether a name of the deadline means something else at a step.
    fn is_hidden(&self, point: usize, node: usize) -> bool {
        let Some(deadline) = self.constructs.points[point].guard() else { return false };
        let at = self.flow.steps[node].place.start;
        locals(self.unit, self.function, deadline.node).into_iter().any(|v| {
            let variable = &self.function.variables[v];
            let meant = self.unit.resolve(self.function, variable.name, at);
            meant.is_none_or(|m| m.place != variable.place)
        })
    }

    /// Code that runs where the deadline is ambiguous.
    fn report_conflicts(&mut self, guards: &Guards) {
        let is_many = |n: usize| guards.at[n] == Guard::Many && guards.assigned[n].is_some();
        let loops = cyclic(&self.flow.steps, is_many);
        let mut told: HashSet<Vec<usize>> = HashSet::new();
        let mut order: Vec<usize> = (0..self.flow.steps.len()).filter(|n| is_many(*n)).collect();
        order.sort_by_key(|n| self.flow.steps[*n].place.start);
        for node in order {
            let step = &self.flow.steps[node];
            let runs = matches!(step.kind, StepKind::Call(_) | StepKind::Start(_))
                || (loops.contains(&node)
                    && matches!(step.kind, StepKind::Join | StepKind::Slot(_)));
            let points = self.guarding(&guards.next[node]);
            if !runs || !told.insert(points.clone()) {
                continue;
            }
            let place = step.place.start..first_line_end(self.unit.text, &step.place);
            let mut found = Diagnostic::error(
                codes::GUARD,
                "timing points with different deadlines may be next",
                self.unit.at(place),
                "ambiguous deadline",
            )
            .help("choose between the points first, or give both the same deadline");
            for point in points {
                let call = self.constructs.points[point].call;
                found = found.related(self.unit.at(call.byte_range()), "this may be next");
            }
            self.diagnostics.push(found);
        }
    }

    /// Where the guard in force is not the one that is wanted.
    fn actions(&self, guards: &Guards) -> BTreeMap<usize, Action> {
        let steps = &self.flow.steps;
        let in_force = forward(
            steps,
            BTreeSet::from([(Guard::None, false)]),
            |all, more| all.extend(more.iter().copied()),
            |node, before| match steps[node].kind {
                StepKind::Point(_) => BTreeSet::from([(Guard::None, false)]),
                StepKind::Call(call) if self.program.has_points(call) => {
                    BTreeSet::from([(Guard::None, false)])
                }
                StepKind::Slot(_) => match self.wanted(node, guards) {
                    Some((wanted, runs)) if changes(before, wanted, runs) => {
                        BTreeSet::from([(wanted, false)])
                    }
                    _ => before.clone(),
                },
                StepKind::Assign(variable) => {
                    before.iter().map(|(g, old)| (*g, *old || self.depends(*g, variable))).collect()
                }
                _ => before.clone(),
            },
        );
        let mut found = BTreeMap::new();
        for (node, step) in steps.iter().enumerate() {
            let (StepKind::Slot(slot), Some(before)) = (step.kind, &in_force[node]) else {
                continue;
            };
            let Some((wanted, runs)) = self.wanted(node, guards) else { continue };
            if !changes(before, wanted, runs) {
                continue;
            }
            let action = match wanted {
                Guard::Of(p) if before.contains(&(wanted, true)) => Action::Renew(p),
                Guard::Of(p) if before.iter().any(|b| *b != (wanted, false)) => Action::Begin(p),
                Guard::None | Guard::Many if before.iter().any(|(g, _)| *g != Guard::None) => {
                    Action::End
                }
                _ => continue,
            };
            found.insert(slot, action);
        }
        found
    }

    fn depends(&self, guard: Guard, variable: usize) -> bool {
        let Guard::Of(point) = guard else { return false };
        let deadline = self.constructs.points[point].guard();
        deadline.is_some_and(|d| locals(self.unit, self.function, d.node).contains(&variable))
    }

    /// The guard that a slot wants, and whether anything runs there that could be late.
    fn wanted(&self, node: usize, guards: &Guards) -> Option<(Guard, bool)> {
        let StepKind::Slot(slot) = self.flow.steps[node].kind else { return None };
        let statement = self.flow.slots[slot].node();
        let is_empty = children(statement).is_empty();
        // The function's end ends its guard, but the end of a critical block comes before.
        if statement.kind() == "return_statement" && is_empty && !self.flow.steps[node].in_critical
        {
            return None;
        }
        let guard = match guards.at[node] {
            Guard::Many => Guard::None,
            // It cannot be computed here; the guard that there was stays.
            Guard::Of(point) if self.is_hidden(point, node) => return None,
            guard => guard,
        };
        // An empty statement may stand for a declared execution time.
        let is_timed = statement.kind() == "expression_statement" && is_empty;
        Some((guard, is_timed || self.runs(node, guards)))
    }

    /// Whether a call or a loop comes before the next slot or point.
    fn runs(&self, slot: usize, guards: &Guards) -> bool {
        let (mut open, mut seen) = (vec![slot], HashSet::from([slot]));
        while let Some(node) = open.pop() {
            let step = &self.flow.steps[node];
            let runs = matches!(step.kind, StepKind::Call(_) | StepKind::Start(_));
            if runs || guards.busy.contains(&node) {
                return true;
            }
            // At a slot where the deadline's names are hidden no guard can begin: what runs behind
            // it counts here.
            let is_hidden = matches!(guards.at[node], Guard::Of(p) if self.is_hidden(p, node));
            if matches!(step.kind, StepKind::Point(_))
                || (node != slot && matches!(step.kind, StepKind::Slot(_)) && !is_hidden)
            {
                continue;
            }
            open.extend(step.next.iter().filter(|n| seen.insert(**n)));
        }
        false
    }
}

/// Whether a guard has to be written: another one may be in force, or none where something runs.
fn changes(in_force: &BTreeSet<(Guard, bool)>, wanted: Guard, runs: bool) -> bool {
    let is_harmless = |(guard, _): &(Guard, bool)| !runs && *guard == Guard::None;
    in_force.iter().any(|f| *f != (wanted, false) && !is_harmless(f))
}

/// The end of a place's first line.
fn first_line_end(text: &str, place: &std::ops::Range<usize>) -> usize {
    let line = text.get(place.clone()).and_then(|t| t.lines().next()).unwrap_or("");
    place.start + line.trim_end().len().max(1)
}
