//! Declared execution times.

use super::codes;
use super::construct::{Construct, Constructs};
use super::edits::{Edits, Rank};
use super::flow::{Flow, StepKind};
use super::output::Figures;
use super::prepare::Exectime;
use super::program::Program;
use super::syntax::{declared, fields, number};
use super::unit::Unit;
use onbeat_model::limits;
use std::collections::{HashMap, HashSet};

/// Best and worst case in nanoseconds.
pub(super) type Times = (i64, i64);

/// What is declared.
#[derive(Debug, Default)]
pub(super) struct Work<'t> {
    functions: HashMap<&'t str, Times>,
    /// By the place of the statement's semicolon.
    places: HashMap<usize, Times>,
}

/// Reads all attributes, and changes them.
pub(super) fn read<'t>(unit: &mut Unit<'t>, edits: &mut Edits) -> Work<'t> {
    let mut work = Work::default();
    let prepared = unit.prepared;
    for attribute in &prepared.exectimes {
        let Some(times) = times(unit, attribute) else { continue };
        let bytes = prepared.text.as_bytes();
        let blanks = bytes[attribute.whole.end..].iter().take_while(|b| b.is_ascii_whitespace());
        let next = attribute.whole.end + blanks.count();
        let mut node = unit.root.descendant_for_byte_range(next, next + 1);
        while let Some(n) = node {
            match n.kind() {
                "expression_statement" if n.start_byte() == next => {
                    // What else belongs before the statement comes before this.
                    // An operand before the statement's expression, if it has one.
                    let comma = if n.named_child_count() > 0 { ", " } else { "" };
                    let text = format!("timedc_work({}, {}){comma}", times.0, times.1);
                    edits.replace(attribute.whole.clone(), "");
                    edits.before(n.byte_range(), Rank::Head, &text);
                    work.places.insert(next, times);
                    break;
                }
                "function_definition" | "declaration" => {
                    for declarator in fields(n, "declarator") {
                        if let Some(name) = declared(declarator) {
                            work.functions.insert(unit.words(name), times);
                        }
                    }
                    edits.replace(attribute.word.clone(), "");
                    break;
                }
                _ => node = n.parent(),
            }
        }
    }
    work
}

fn times(unit: &mut Unit<'_>, attribute: &Exectime) -> Option<Times> {
    let words: Vec<&str> =
        attribute.arguments.iter().map(|r| unit.text[r.clone()].trim()).collect();
    let help = "write `exectime(bcet, wcet, unit)` or `exectime(time, unit)` with whole numbers";
    let at = attribute.word.clone();
    let (numbers, word) = match &words[..] {
        [best, worst, word] => ([*best, *worst], *word),
        [both, word] => ([*both, *both], *word),
        _ => {
            let text = format!("`exectime` has 2 or 3 arguments, not {}", words.len());
            unit.error(codes::FORM, at, text, "here", help);
            return None;
        }
    };
    let scale = match word.trim_matches('"') {
        "sec" | "0" => 1_000_000_000,
        "ms" | "-3" => 1_000_000,
        "us" | "micro" | "-6" => 1_000,
        "ns" | "-9" => 1,
        _ => {
            let text = format!("unknown unit of time `{word}`");
            let help = "use sec, ms, us or ns, or 0, -3, -6 or -9";
            unit.error(codes::UNIT, at, text, "here", help);
            return None;
        }
    };
    let read = |text: &str| {
        number(text.trim_matches(['(', ')'])).map(|number| number.saturating_mul(scale))
    };
    let (Some(best), Some(worst)) = (read(numbers[0]), read(numbers[1])) else {
        unit.error(codes::FORM, at, "an execution time is a whole number", "here", help);
        return None;
    };
    let most = i128::from(limits::PROGRAM_DELAY.as_ns());
    if [best, worst].iter().any(|time| !(0..=most).contains(time)) {
        let help = "write 0 or more, and at most 288230376 s";
        let text = "an execution time that is negative or longer than 9 years";
        unit.error(codes::DELAY, at, text, "here", help);
        return None;
    }
    if best > worst {
        let text = "the best execution time is longer than the worst";
        unit.error(codes::FORM, at, text, "here", "write the best case first");
        return None;
    }
    Some((i64::try_from(best).ok()?, i64::try_from(worst).ok()?))
}

impl<'t> Work<'t> {
    /// What a function's body begins with.
    pub(super) fn statement(&self, name: &str) -> Option<String> {
        let (best, worst) = self.functions.get(name)?;
        Some(format!(" timedc_work({best}, {worst});"))
    }

    /// What each call of a function takes.
    pub(super) fn of_function(&self, name: &str) -> Option<Times> {
        self.functions.get(name).copied()
    }

    /// What passes at a step at which a statement begins.
    pub(super) fn at_step(&self, flow: &Flow<'t>, step: usize) -> Option<Times> {
        let node = match flow.steps[step].kind {
            StepKind::Slot(slot) => flow.slots[slot].node(),
            StepKind::Inner(node) => node,
            _ => return None,
        };
        self.at_statement(node.start_byte())
    }

    /// What passes at the statement that begins at a place.
    pub(super) fn at_statement(&self, place: usize) -> Option<Times> {
        self.places.get(&place).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.places.is_empty()
    }

    /// The longest time in each function, without timing points between, from its beginning and
    /// from any point on. Loops count once.
    fn longest(&self, unit: &Unit<'_>, program: &Program<'_>, flows: &[Flow<'t>]) -> Vec<Times> {
        let mut found: Vec<Times> = vec![(0, 0); flows.len()];
        let order = program.callees_first(flows.len());
        // Deeper chains of calls than functions there are none, but for recursion.
        for _ in 0..flows.len() {
            let before = found.clone();
            for (index, flow) in order.iter().map(|index| (*index, &flows[*index])) {
                let own = self.functions.get(unit.functions[index].name).map_or(0, |t| t.1);
                let (first, most) = self.in_flow(program, flow, &found);
                found[index] = (first.saturating_add(own), most.max(first.saturating_add(own)));
            }
            if found == before {
                break;
            }
        }
        found
    }

    fn in_flow(&self, program: &Program<'_>, flow: &Flow<'t>, functions: &[Times]) -> Times {
        let mut behind: Vec<Option<i64>> = vec![None; flow.steps.len()];
        let (mut open, mut seen) = (vec![(0, 0)], HashSet::from([0]));
        let mut most = 0;
        while let Some((node, at)) = open.pop() {
            if let Some(next) = flow.steps[node].next.get(at).copied() {
                open.push((node, at + 1));
                if seen.insert(next) {
                    open.push((next, 0));
                }
                continue;
            }
            let following = flow.steps[node].next.iter().filter_map(|n| behind[*n]);
            let following = following.max().unwrap_or(0);
            let value = match flow.steps[node].kind {
                StepKind::Point(_) => {
                    most = most.max(following);
                    0
                }
                StepKind::Call(call) => {
                    let called = program.callee(call);
                    following.saturating_add(called.map_or(0, |f| functions[f].0))
                }
                StepKind::Slot(_) | StepKind::Inner(_) => {
                    following.saturating_add(self.at_step(flow, node).map_or(0, |t| t.1))
                }
                _ => following,
            };
            behind[node] = Some(value);
        }
        let first = behind[0].unwrap_or(0);
        (first, most.max(first))
    }
}

/// What is known of each function as a task.
pub(super) fn figures(
    unit: &Unit<'_>,
    constructs: &Constructs<'_>,
    program: &Program<'_>,
    flows: &[Flow<'_>],
    work: &Work<'_>,
) -> Vec<Figures> {
    let mut found = vec![Figures::default(); flows.len()];
    if !work.is_empty() {
        for (index, (_, most)) in work.longest(unit, program, flows).into_iter().enumerate() {
            found[index].wcet_ns = most;
        }
    }
    for (index, order) in constructs.order.iter().enumerate() {
        for id in order {
            if let Some((_, Construct::Aperiodic(length, ..))) = constructs.calls.get(id) {
                found[index].separation_ns = length.constant_ns;
            }
        }
    }
    found
}
