//! The constructs that look like calls: timing points, `gettime`, scheduling, starts of tasks.

use super::syntax::{bare, children, fields, walk};
use super::unit::{Function, Role, Unit};
use super::{Origin, codes};
use onbeat_model::graph::PointKind;
use onbeat_model::limits;
use std::collections::HashMap;
use std::ops::Range;
use tree_sitter::Node;

/// A unit of time: the exponent that the run time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeUnit(pub i8);

impl TimeUnit {
    /// Nanoseconds in one.
    pub(super) fn scale(self) -> i64 {
        match self.0 {
            0 => 1_000_000_000,
            -3 => 1_000_000,
            -6 => 1_000,
            _ => 1,
        }
    }
}

/// An argument that is a length of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length<'t> {
    pub node: Node<'t>,
    /// In nanoseconds, if it is constant.
    pub constant_ns: Option<i64>,
}

/// A deadline of a timing point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deadline<'t> {
    /// The period.
    Same,
    /// `infty`.
    None(Node<'t>),
    Length(Length<'t>),
}

/// A timing point.
#[derive(Clone, Debug)]
pub(super) struct TimingPoint<'t> {
    pub kind: PointKind,
    pub call: Node<'t>,
    pub function: usize,
    pub period: Length<'t>,
    pub deadline: Deadline<'t>,
    pub unit: TimeUnit,
    pub unit_node: Option<Node<'t>>,
}

impl<'t> TimingPoint<'t> {
    /// What the guard waits for; none if it never ends.
    pub(super) fn guard(&self) -> Option<Length<'t>> {
        match (self.kind, self.deadline) {
            (PointKind::Soft, _) | (_, Deadline::None(_)) => None,
            (_, Deadline::Same) => Some(self.period),
            (_, Deadline::Length(length)) => Some(length),
        }
    }
}

/// What a call is.
#[derive(Clone, Debug)]
pub(super) enum Construct<'t> {
    Point(usize),
    Gettime(TimeUnit, Node<'t>),
    Start(&'t str),
    Policy(&'static str, Node<'t>),
    Aperiodic(Length<'t>, TimeUnit, Node<'t>),
    Priority,
}

/// All of a unit.
#[derive(Debug, Default)]
pub(super) struct Constructs<'t> {
    pub points: Vec<TimingPoint<'t>>,
    /// By the call's node.
    pub calls: HashMap<usize, (Node<'t>, Construct<'t>)>,
    /// Per function, in the order of the text.
    pub order: Vec<Vec<usize>>,
    /// Calls in operands of `sizeof`, as `assert` has them: nothing is evaluated there.
    pub unevaluated: Vec<Node<'t>>,
}

impl<'t> Constructs<'t> {
    /// Whether the timing points of a function count from where it was called.
    pub(super) fn counts_from_entry(&self, unit: &Unit<'t>, function: &Function<'t>) -> bool {
        let is_it = |point: &TimingPoint<'t>| unit.functions[point.function].name == function.name;
        unit.options.origin == Origin::Function
            && function.role == Role::Plain
            && self.points.iter().any(is_it)
    }
}

const POLICIES: [(&str, &str); 5] = [
    ("EDF", "TIMEDC_EDF"),
    ("FIFO_RM", "TIMEDC_FIFO_RM"),
    ("RR_RM", "TIMEDC_RR_RM"),
    ("FIFO_DM", "TIMEDC_FIFO_DM"),
    ("RR_DM", "TIMEDC_RR_DM"),
];

/// Reads all functions.
pub(super) fn read<'t>(unit: &mut Unit<'t>) -> Constructs<'t> {
    let mut made = Constructs::default();
    for index in 0..unit.functions.len() {
        let mut calls = Vec::new();
        walk(unit.functions[index].body, |node| {
            if node.kind() == "call_expression" {
                calls.push(node);
            }
            let is_evaluated = !matches!(node.kind(), "sizeof_expression" | "alignof_expression");
            if !is_evaluated {
                let function = &unit.functions[index];
                made.unevaluated.extend(points_in(unit, function, node));
            }
            is_evaluated
        });
        for call in &calls {
            Reader { unit: &mut *unit, function: index, made: &mut made }.call(*call);
        }
        made.order.push(calls.iter().map(Node::id).collect());
    }
    made
}

/// The calls that would be timing points if they were evaluated.
fn points_in<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> Vec<Node<'t>> {
    const WORDS: [&str; 7] = ["sdelay", "stp", "fdelay", "ftp", "hdelay", "htp", "gettime"];
    let mut found = Vec::new();
    walk(node, |inner| {
        let name =
            inner.child_by_field_name("function").filter(|_| inner.kind() == "call_expression");
        let is_point =
            name.is_some_and(|n| WORDS.contains(&unit.words(n)) && unit.is_word(function, n));
        found.extend(is_point.then_some(inner));
        !is_point
    });
    found
}

struct Reader<'u, 't> {
    unit: &'u mut Unit<'t>,
    function: usize,
    made: &'u mut Constructs<'t>,
}

impl<'t> Reader<'_, 't> {
    fn function(&self) -> &Function<'t> {
        &self.unit.functions[self.function]
    }

    fn call(&mut self, call: Node<'t>) {
        let Some(name) = call.child_by_field_name("function") else { return };
        let word = self.unit.words(name);
        let arguments = call.child_by_field_name("arguments").map(children).unwrap_or_default();
        if name.kind() == "identifier"
            && self.unit.tasks.contains(word)
            && self.unit.resolve(self.function(), word, name.start_byte()).is_none()
        {
            self.made.calls.insert(call.id(), (call, Construct::Start(word)));
            return;
        }
        if !self.unit.is_word(self.function(), name) {
            return;
        }
        let construct = match word {
            "sdelay" | "stp" => self.point(call, word, PointKind::Soft, &arguments),
            "fdelay" | "ftp" => self.point(call, word, PointKind::Firm, &arguments),
            "hdelay" | "htp" => self.point(call, word, PointKind::Hard, &arguments),
            "gettime" => self.gettime(call, &arguments),
            "spolicy" => self.policy(call, &arguments),
            "aperiodic" => self.aperiodic(call, &arguments),
            "spriority" => self.priority(call, &arguments),
            // The C compiler would take what is too much as operands of commas.
            "cwrite" | "cinit" if arguments.len() != 2 => {
                let text = format!("`{word}` has 2 arguments, not {}", arguments.len());
                let help =
                    format!("write the channel and the value, as in `{word}(samples, value)`");
                return self.form(call, text, &help);
            }
            _ => return,
        };
        if let Some(construct) = construct {
            self.made.calls.insert(call.id(), (call, construct));
        }
    }

    fn form(&mut self, call: Node<'t>, message: String, help: &str) {
        self.unit.error(codes::FORM, call.byte_range(), message, "here", help);
    }

    fn point(
        &mut self,
        call: Node<'t>,
        word: &str,
        kind: PointKind,
        arguments: &[Node<'t>],
    ) -> Option<Construct<'t>> {
        let is_delay = word.ends_with("delay");
        let wanted = if is_delay { 2 } else { 3 };
        let (unit, unit_node) = match arguments.len() {
            n if n == wanted => {
                let node = arguments[n - 1];
                (self.unit_of(node)?, Some(node))
            }
            1 if is_delay => {
                let help = format!("write `{word}({}, ms)`", self.unit.words(arguments[0]));
                let text = format!("`{word}` has no unit: taken as milliseconds");
                let found = self.unit.error(codes::NO_UNIT, call.byte_range(), text, "here", &help);
                *found = found.clone().warning();
                (TimeUnit(-3), None)
            }
            2 if !is_delay => {
                let help = format!("write `{word}(period, deadline, ms)`");
                let text = format!("`{word}` has no unit");
                self.unit.error(codes::UNIT, call.byte_range(), text, "here", &help);
                return None;
            }
            n => {
                let text = format!("`{word}` has {wanted} arguments, not {n}");
                let help = if is_delay {
                    "write the delay and its unit, as in `fdelay(10, ms)`"
                } else {
                    "write period, deadline and unit, as in `ftp(10, 5, ms)`"
                };
                self.form(call, text, help);
                return None;
            }
        };
        let period = self.length(arguments[0], unit)?;
        let deadline = match is_delay {
            true => Deadline::Same,
            false => self.deadline(arguments[1], unit)?,
        };
        self.check_deadline(&period, &deadline, unit);
        let function = self.function;
        let point = TimingPoint { kind, call, function, period, deadline, unit, unit_node };
        self.check_guard(&point);
        self.made.points.push(point);
        Some(Construct::Point(self.made.points.len() - 1))
    }

    fn deadline(&mut self, node: Node<'t>, unit: TimeUnit) -> Option<Deadline<'t>> {
        let inner = bare(node);
        if self.unit.words(inner) == "infty" && self.unit.is_word(self.function(), inner) {
            return Some(Deadline::None(node));
        }
        self.length(node, unit).map(Deadline::Length)
    }

    fn check_deadline(&mut self, period: &Length<'t>, deadline: &Deadline<'t>, unit: TimeUnit) {
        let Deadline::Length(deadline) = deadline else { return };
        let (Some(after), Some(release)) = (deadline.constant_ns, period.constant_ns) else {
            return;
        };
        // What does not wait may have a deadline all the same.
        if after > release && release > 0 {
            let text = format!(
                "the deadline, {}, is after the release, {}",
                after / unit.scale(),
                release / unit.scale()
            );
            let help = "use at most the period as the deadline; `infty` means none";
            let (at, release) = (deadline.node.byte_range(), period.node.byte_range());
            let release = self.unit.at(release);
            let found = self.unit.error(codes::DEADLINE, at, text, "the deadline", help);
            found.related.push((release, "the period".to_owned()));
        }
    }

    /// A deadline is evaluated where the guard begins, and a period at the point: effects would
    /// come twice.
    fn check_guard(&mut self, point: &TimingPoint<'t>) {
        let Some(deadline) = point.guard() else { return };
        let mut effect = None;
        walk(deadline.node, |node| {
            if matches!(
                node.kind(),
                "call_expression" | "assignment_expression" | "update_expression"
            ) {
                effect = effect.or(Some(node));
            }
            !matches!(node.kind(), "sizeof_expression" | "alignof_expression")
        });
        if let Some(effect) = effect {
            let text = "a deadline is evaluated more than once, so it has no calls or assignments";
            let help = "compute it before, into a variable";
            self.unit.error(codes::FORM, effect.byte_range(), text, "here", help);
        }
    }

    /// A whole number of units.
    fn length(&mut self, node: Node<'t>, unit: TimeUnit) -> Option<Length<'t>> {
        if self.is_fraction(node) {
            let help = "use a smaller unit: 1500 us instead of 1.5 ms";
            let text = format!("`{}` is not a whole number", self.unit.words(node));
            self.form(node, text, help);
            return None;
        }
        let value = self.unit.constant(node);
        let ns = value.map(|value| value.saturating_mul(i128::from(unit.scale())));
        let most = i128::from(limits::PROGRAM_DELAY.as_ns());
        if ns.is_some_and(|ns| ns < 0 || ns > most) {
            let text = format!("a delay of {}", value.unwrap_or(0));
            let (label, help) = match ns.is_some_and(|ns| ns < 0) {
                true => ("negative", "write 0 or more"),
                false => ("longer than 9 years", "write at most 288230376 s, or `infty`"),
            };
            self.unit.error(codes::DELAY, node.byte_range(), text, label, help);
            return None;
        }
        let constant_ns = ns.and_then(|ns| i64::try_from(ns).ok());
        Some(Length { node, constant_ns })
    }

    /// Whether an expression is plainly of a floating type, or a string.
    fn is_fraction(&self, node: Node<'t>) -> bool {
        let inner = bare(node);
        let text = self.unit.words(inner);
        if node.kind() == "cast_expression" {
            return false;
        }
        match inner.kind() {
            "number_literal" => {
                let hex = text.starts_with("0x") || text.starts_with("0X");
                text.contains('.') || (!hex && text.contains(['e', 'E']))
            }
            "string_literal" | "concatenated_string" => true,
            "identifier" => {
                let at = inner.start_byte();
                let local = self.unit.resolve(self.function(), text, at);
                let global = self.unit.globals.iter().find(|v| v.name == text);
                local.or(global).is_some_and(|v| {
                    v.declarator.kind() == "identifier"
                        && v.kind.is_some_and(|k| matches!(self.unit.words(k), "float" | "double"))
                })
            }
            "binary_expression" => fields(inner, "left")
                .into_iter()
                .chain(fields(inner, "right"))
                .any(|n| n.kind() == "number_literal" && self.is_fraction(n)),
            _ => false,
        }
    }

    fn unit_of(&mut self, node: Node<'t>) -> Option<TimeUnit> {
        let inner = bare(node);
        let text = self.unit.words(inner);
        let exponent = match text {
            "sec" | "\"sec\"" => Some(0),
            "ms" | "\"ms\"" => Some(-3),
            "us" | "\"us\"" | "\"micro\"" => Some(-6),
            "ns" | "\"ns\"" => Some(-9),
            _ => self.unit.constant(node).and_then(|v| i8::try_from(v).ok()),
        };
        if let Some(exponent @ (0 | -3 | -6 | -9)) = exponent {
            return Some(TimeUnit(exponent));
        }
        let message = format!("unknown unit of time `{text}`");
        let help = "use sec, ms, us or ns, or 0, -3, -6 or -9";
        self.unit.error(codes::UNIT, node.byte_range(), message, "here", help);
        None
    }

    fn gettime(&mut self, call: Node<'t>, arguments: &[Node<'t>]) -> Option<Construct<'t>> {
        match arguments {
            [unit] => Some(Construct::Gettime(self.unit_of(*unit)?, *unit)),
            [] => {
                let (text, help) = ("`gettime` has no unit", "write `gettime(ms)`");
                self.unit.error(codes::UNIT, call.byte_range(), text, "here", help);
                None
            }
            _ => {
                let text = format!("`gettime` has 1 argument, not {}", arguments.len());
                self.form(call, text, "write the unit only, as in `gettime(ms)`");
                None
            }
        }
    }

    fn policy(&mut self, call: Node<'t>, arguments: &[Node<'t>]) -> Option<Construct<'t>> {
        let known = match arguments {
            [word] => POLICIES.iter().find(|(name, _)| *name == self.unit.words(bare(*word))),
            _ => None,
        };
        if let Some((_, constant)) = known {
            return Some(Construct::Policy(constant, arguments[0]));
        }
        let text = match arguments {
            [word] => format!("unknown scheduling policy `{}`", self.unit.words(*word)),
            _ => format!("`spolicy` has 1 argument, not {}", arguments.len()),
        };
        self.form(call, text, "policies are EDF, FIFO_RM, RR_RM, FIFO_DM and RR_DM");
        None
    }

    fn aperiodic(&mut self, call: Node<'t>, arguments: &[Node<'t>]) -> Option<Construct<'t>> {
        let help = "write the least separation and its unit, as in `aperiodic(50, ms)`";
        match arguments {
            [separation, unit] => {
                let scale = self.unit_of(*unit)?;
                Some(Construct::Aperiodic(self.length(*separation, scale)?, scale, *unit))
            }
            [_] => {
                let text = "`aperiodic` has no unit";
                self.unit.error(codes::UNIT, call.byte_range(), text, "here", help);
                None
            }
            _ => {
                let text = format!("`aperiodic` has 2 arguments, not {}", arguments.len());
                self.form(call, text, help);
                None
            }
        }
    }

    fn priority(&mut self, call: Node<'t>, arguments: &[Node<'t>]) -> Option<Construct<'t>> {
        if arguments.len() == 1 {
            return Some(Construct::Priority);
        }
        let text = format!("`spriority` has 1 argument, not {}", arguments.len());
        self.form(call, text, "write the priority only, as in `spriority(80)`");
        None
    }
}

/// Where an argument begins, and its comma.
pub(super) fn behind_comma(previous: Node<'_>, argument: Node<'_>) -> Range<usize> {
    let comma = previous.next_sibling().filter(|n| n.kind() == ",");
    comma.map_or(previous.end_byte(), |c| c.start_byte())..argument.end_byte()
}
