//! Control flow of one function: a graph of what happens, in the order in which it happens.

use super::construct::{Construct, Constructs};
use super::program::Program;
use super::syntax::{bare, children, comma_parts, declared, fields, walk};
use super::unit::{Function, Unit};
use super::value::begins;
use onbeat_model::graph::PointKind;
use std::collections::HashMap;
use std::ops::Range;
use tree_sitter::Node;

/// What happens at a node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind<'t> {
    /// Nothing: ways meet.
    Join,
    /// A statement or a loop's condition begins: a guard can begin here.
    Slot(usize),
    /// A condition is decided; whether the first of `next` is where it holds.
    Branch(Node<'t>, bool),
    /// A `switch` chooses.
    Choose(Node<'t>),
    /// The same in a statement expression, where no text can be put.
    Inner(Node<'t>),
    /// A timing point.
    Point(usize),
    /// The origin moves.
    Gettime,
    /// A call that is no construct.
    Call(Node<'t>),
    /// A task is started.
    Start(Node<'t>),
    /// A variable gets a value.
    Assign(usize),
    /// A variable without a value comes into being.
    Declare(usize),
    /// `skipdelay`.
    Skip(Node<'t>),
    /// A critical block's end.
    CriticalEnd(Node<'t>),
    /// The function's end.
    Exit,
}

/// A node of the graph.
#[derive(Clone, Debug)]
pub(super) struct Step<'t> {
    pub kind: StepKind<'t>,
    /// Where it is written.
    pub place: Range<usize>,
    pub next: Vec<usize>,
    pub in_critical: bool,
}

/// Where text can be put that is executed right before something.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot<'t> {
    /// Before a statement.
    Statement(Node<'t>),
    /// Before an operand of a comma that becomes a statement.
    Part(Node<'t>),
    /// Before an expression, with a comma.
    Expression(Node<'t>),
}

impl<'t> Slot<'t> {
    pub(super) fn node(self) -> Node<'t> {
        match self {
            Self::Statement(node) | Self::Part(node) | Self::Expression(node) => node,
        }
    }
}

/// A construct whose expression becomes statements, so that a point in it can be gone to.
#[derive(Clone, Debug)]
pub(super) enum Lift<'t> {
    /// `a, b;`
    Sequence(Node<'t>),
    /// `if (a, b)`, `switch (a, b)`, `for (a, b; …)`, `return a, b;`: the expression.
    Head(Node<'t>, Node<'t>),
    While(Node<'t>),
    Do(Node<'t>),
    Condition(Node<'t>),
    Step(Node<'t>),
}

/// A loop without end and without timing points.
#[derive(Debug)]
pub(super) struct Endless<'t> {
    pub node: Node<'t>,
    pub again: usize,
    pub steps: Vec<usize>,
}

/// The graph.
#[derive(Debug)]
pub(super) struct Flow<'t> {
    pub steps: Vec<Step<'t>>,
    pub exit: usize,
    pub slots: Vec<Slot<'t>>,
    pub lifts: Vec<Lift<'t>>,
    /// `continue` statements by their loop.
    pub continues: HashMap<usize, Vec<Node<'t>>>,
    /// Whether control can come to the body's closing brace.
    pub falls_off: bool,
    /// Statements that are no expressions' parts, in the order of the text.
    pub statements: Vec<Node<'t>>,
    pub criticals: Vec<Node<'t>>,
    pub skips: Vec<Node<'t>>,
    /// Where a `switch` goes, by its choice: values, none for `default`, in the order of the text.
    pub cases: HashMap<usize, Vec<(Option<Node<'t>>, usize)>>,
    /// Edges that only aborts go.
    pub aborts: Vec<(usize, usize)>,
    /// Loops that control enters for certain: from the step before the condition to the body.
    pub entered: HashMap<usize, usize>,
    /// Loops that nothing but an abort leaves, without timing points: where they continue, and all
    /// steps in them.
    pub endless: Vec<Endless<'t>>,
    /// Loops that only somebody else ends, and the step at which their body begins.
    pub busy: Vec<(Node<'t>, usize)>,
}

/// Functions that do not return.
const ENDINGS: [&str; 7] =
    ["exit", "_exit", "_Exit", "quick_exit", "abort", "pthread_exit", "__builtin_unreachable"];

/// The graph of a function.
pub(super) fn build<'t>(
    unit: &Unit<'t>,
    constructs: &Constructs<'t>,
    program: &Program<'t>,
    index: usize,
) -> Flow<'t> {
    let function = &unit.functions[index];
    let flow = Flow {
        steps: Vec::new(),
        exit: 0,
        slots: Vec::new(),
        lifts: Vec::new(),
        continues: HashMap::new(),
        falls_off: false,
        statements: Vec::new(),
        criticals: Vec::new(),
        skips: Vec::new(),
        cases: HashMap::new(),
        aborts: Vec::new(),
        entered: HashMap::new(),
        endless: Vec::new(),
        busy: Vec::new(),
    };
    let mut has_skip = false;
    walk(function.body, |node| {
        has_skip |= node.kind() == "expression_statement" && is_skip(unit, function, node);
        true
    });
    let mut builder = Builder {
        unit,
        constructs,
        function,
        flow,
        now: 0,
        has_skip,
        critical: 0,
        quiet: 0,
        labels: HashMap::new(),
        around: Vec::new(),
        endless: Vec::new(),
    };
    builder.run(program);
    builder.flow
}

/// Whether a statement is `skipdelay;`.
fn is_skip<'t>(unit: &Unit<'t>, function: &Function<'t>, node: Node<'t>) -> bool {
    let inner = children(node);
    inner.len() == 1 && unit.words(inner[0]) == "skipdelay" && unit.is_word(function, inner[0])
}

/// What `break`, `continue` and `case` belong to.
struct Around<'t> {
    node: Node<'t>,
    end: usize,
    /// None for a `switch`.
    again: Option<usize>,
    /// Where a `switch` chooses.
    head: usize,
    has_default: bool,
}

struct Builder<'u, 't> {
    unit: &'u Unit<'t>,
    constructs: &'u Constructs<'t>,
    function: &'u Function<'t>,
    flow: Flow<'t>,
    now: usize,
    has_skip: bool,
    critical: usize,
    /// In how many statement expressions.
    quiet: usize,
    labels: HashMap<&'t str, usize>,
    around: Vec<Around<'t>>,
    /// Loops that always continue: where they do, and what is behind them.
    endless: Vec<(Node<'t>, usize, usize)>,
}

impl<'t> Builder<'_, 't> {
    fn run(&mut self, program: &Program<'t>) {
        let body = self.function.body;
        self.now = self.apart(StepKind::Join, body.start_byte()..body.start_byte() + 1);
        let end = body.end_byte();
        self.flow.exit = self.apart(StepKind::Exit, end.saturating_sub(1)..end);
        for statement in children(body) {
            self.statement(statement);
        }
        let last = self.now;
        self.edge(last, self.flow.exit);
        self.leave_endless(program);
        self.flow.falls_off = super::solve::reachable(&self.flow.steps).contains(&last);
    }

    /// Loops without end and without points are left by the abort to the point behind them.
    fn leave_endless(&mut self, program: &Program<'t>) {
        for (node, again, end) in std::mem::take(&mut self.endless) {
            let steps = &self.flow.steps;
            let is_point = |step: &Step<'t>| match step.kind {
                StepKind::Point(_) => true,
                StepKind::Call(call) => program.has_points(call),
                _ => false,
            };
            let range = node.byte_range();
            let has_point = steps.iter().any(|s| is_point(s) && range.contains(&s.place.start));
            let is_left = steps.iter().any(|s| s.next.contains(&end));
            let behind = super::solve::reachable_from(steps, end);
            let inside = super::solve::reachable_from(steps, again);
            // At one of these points no time passes.
            let is_zero = |step: &Step<'t>| match step.kind {
                StepKind::Point(p) => self.constructs.points[p].period.constant_ns == Some(0),
                _ => false,
            };
            let waits = |at: &usize| is_point(&steps[*at]) && !is_zero(&steps[*at]);
            let ends = inside.contains(&self.flow.exit) || inside.iter().any(waits);
            let never_waits =
                !steps.iter().any(|s| is_point(s) && !is_zero(s) && range.contains(&s.place.start));
            if !ends && never_waits && super::solve::reachable(steps).contains(&again) {
                let steps = inside.into_iter().collect();
                self.flow.endless.push(Endless { node, again, steps });
            }
            let steps = &self.flow.steps;
            if !is_left && !has_point && behind.iter().any(|s| is_point(&steps[*s])) {
                self.edge(again, end);
                self.flow.aborts.push((again, end));
            }
        }
        // What never ends is the innermost one.
        let all: Vec<Range<usize>> =
            self.flow.endless.iter().map(|e| e.node.byte_range()).collect();
        let holds = |outer: &Range<usize>, inner: &Range<usize>| {
            outer != inner && outer.start <= inner.start && inner.end <= outer.end
        };
        self.flow.endless.retain(|e| !all.iter().any(|inner| holds(&e.node.byte_range(), inner)));
    }

    /// A node that nothing leads to yet.
    fn apart(&mut self, kind: StepKind<'t>, place: Range<usize>) -> usize {
        let in_critical = self.critical > 0;
        self.flow.steps.push(Step { kind, place, next: Vec::new(), in_critical });
        self.flow.steps.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize) {
        if !self.flow.steps[from].next.contains(&to) {
            self.flow.steps[from].next.push(to);
        }
    }

    /// What happens next.
    fn add(&mut self, kind: StepKind<'t>, place: Range<usize>) -> usize {
        let new = self.apart(kind, place);
        self.edge(self.now, new);
        self.now = new;
        new
    }

    fn join(&mut self, node: Node<'t>) -> usize {
        self.apart(StepKind::Join, node.byte_range())
    }

    fn go(&mut self, to: usize) {
        self.edge(self.now, to);
    }

    /// Control does not come from here to what follows.
    fn stop(&mut self, node: Node<'t>) {
        self.now = self.join(node);
    }

    fn slot(&mut self, slot: Slot<'t>) {
        if self.quiet == 0 {
            self.flow.slots.push(slot);
            let place = slot.node().byte_range();
            self.add(StepKind::Slot(self.flow.slots.len() - 1), place);
        } else {
            let node = slot.node();
            self.add(StepKind::Inner(node), node.byte_range());
        }
    }

    /// Whether control must be able to go to a point in the expression.
    fn is_target(&self, expression: Node<'t>) -> bool {
        let mut found = false;
        walk(expression, |node| {
            if let Some((_, Construct::Point(p))) = self.constructs.calls.get(&node.id()) {
                found |= self.has_skip || self.constructs.points[*p].kind != PointKind::Soft;
            }
            !matches!(node.kind(), "sizeof_expression" | "compound_statement")
        });
        found && self.quiet == 0
    }

    fn statement(&mut self, node: Node<'t>) {
        if self.quiet == 0 && !matches!(node.kind(), "labeled_statement" | "case_statement") {
            self.flow.statements.push(node);
        }
        match node.kind() {
            "compound_statement" => self.block(node),
            "labeled_statement" => self.labeled(node),
            "case_statement" => self.case(node),
            "if_statement" => self.branch(node),
            "switch_statement" => self.switch(node),
            "while_statement" => self.while_loop(node),
            "do_statement" => self.do_loop(node),
            "for_statement" => self.for_loop(node),
            "break_statement" => {
                self.leaves_critical(node);
                if let Some(end) = self.around.last().map(|a| a.end) {
                    self.go(end);
                }
                self.stop(node);
            }
            "continue_statement" => self.go_on(node),
            "goto_statement" => {
                self.leaves_critical(node);
                let label = node.child_by_field_name("label").map_or("", |l| self.unit.words(l));
                let to = self.label(label, node);
                self.go(to);
                self.stop(node);
            }
            "return_statement" => {
                self.slot(Slot::Statement(node));
                if let Some(value) = children(node).first() {
                    self.parts(node, *value);
                }
                self.go(self.flow.exit);
                self.stop(node);
            }
            "declaration" => self.declaration(node),
            "expression_statement" => self.expression_statement(node),
            // Not C: what is in it is looked at, however it is nested.
            kind if kind.ends_with("_statement") => self.each(node),
            _ => self.expression(node),
        }
    }

    fn block(&mut self, node: Node<'t>) {
        for statement in children(node).into_iter().filter(|n| n.kind() != "attribute_declaration")
        {
            self.statement(statement);
        }
    }

    fn expression_statement(&mut self, node: Node<'t>) {
        let Some(expression) = children(node).first().copied() else {
            // An attribute is not parted from its `;`.
            if self.unit.prepared.attributed.binary_search(&node.start_byte()).is_err() {
                self.slot(Slot::Statement(node));
            }
            return;
        };
        if is_skip(self.unit, self.function, node) {
            self.slot(Slot::Statement(node));
            self.flow.skips.push(node);
            self.add(StepKind::Skip(node), node.byte_range());
            return;
        }
        let (parts, _) = comma_parts(expression);
        let splits = parts.len() > 1 && self.is_target(expression);
        if splits {
            self.flow.lifts.push(Lift::Sequence(expression));
        }
        self.slot(Slot::Statement(node));
        for (index, part) in parts.iter().enumerate() {
            if splits && index > 0 {
                self.slot(Slot::Part(*part));
            }
            self.expression(*part);
        }
    }

    fn label(&mut self, name: &'t str, node: Node<'t>) -> usize {
        if let Some(known) = self.labels.get(name) {
            return *known;
        }
        let new = self.join(node);
        self.labels.insert(name, new);
        new
    }

    fn labeled(&mut self, node: Node<'t>) {
        let name = node.child_by_field_name("label").map_or("", |l| self.unit.words(l));
        let label = self.label(name, node);
        self.go(label);
        self.now = label;
        for inner in children(node).into_iter().skip(1) {
            self.statement(inner);
        }
    }

    fn case(&mut self, node: Node<'t>) {
        let value = node.child_by_field_name("value");
        let here = self.join(node);
        if let Some(switch) = self.around.iter_mut().rev().find(|a| a.again.is_none()) {
            switch.has_default |= value.is_none();
            let head = switch.head;
            self.edge(head, here);
            self.flow.cases.entry(head).or_default().push((value, here));
        }
        self.go(here);
        self.now = here;
        for inner in children(node) {
            if Some(inner) != value {
                self.statement(inner);
            }
        }
    }

    /// Where a critical block is left the guard must be that of where control goes: an abort that
    /// has waited takes effect there.
    fn leaves_critical(&mut self, node: Node<'t>) {
        if self.critical > 0 {
            self.slot(Slot::Statement(node));
        }
    }

    fn go_on(&mut self, node: Node<'t>) {
        self.leaves_critical(node);
        let found = self.around.iter().rev().find_map(|a| a.again.map(|again| (a.node, again)));
        if let Some((around, again)) = found {
            self.flow.continues.entry(around.id()).or_default().push(node);
            self.go(again);
        }
        self.stop(node);
    }

    /// The expression of a statement: its operands one after the other if a point is among them.
    fn parts(&mut self, statement: Node<'t>, expression: Node<'t>) {
        let is_in_parentheses = matches!(statement.kind(), "if_statement" | "switch_statement");
        let inner = if is_in_parentheses { inside(expression) } else { expression };
        let (parts, _) = comma_parts(inner);
        if parts.len() < 2 || !self.is_target(inner) {
            return self.expression(expression);
        }
        self.flow.lifts.push(Lift::Head(statement, inner));
        self.sequence(&parts);
    }

    fn sequence(&mut self, parts: &[Node<'t>]) {
        for part in parts {
            self.slot(Slot::Part(*part));
            self.expression(*part);
        }
    }

    fn branch(&mut self, node: Node<'t>) {
        self.slot(Slot::Statement(node));
        let condition = node.child_by_field_name("condition");
        if let Some(condition) = condition {
            self.parts(node, condition);
        }
        let value = condition.and_then(|c| self.unit.constant(c));
        if let (Some(condition), None) = (condition, value) {
            self.add(StepKind::Branch(condition, true), condition.byte_range());
        }
        let (head, end) = (self.now, self.join(node));
        for (field, taken) in
            [("consequence", value != Some(0)), ("alternative", value.is_none_or(|v| v == 0))]
        {
            if taken {
                self.now = head;
            } else {
                self.stop(node);
            }
            if let Some(inner) = node.child_by_field_name(field) {
                // An else clause holds its statement.
                let clause =
                    if inner.kind() == "else_clause" { children(inner) } else { vec![inner] };
                for statement in clause {
                    self.statement(statement);
                }
            }
            self.go(end);
        }
        self.now = end;
    }

    fn switch(&mut self, node: Node<'t>) {
        self.slot(Slot::Statement(node));
        if let Some(condition) = node.child_by_field_name("condition") {
            self.parts(node, condition);
            self.add(StepKind::Choose(condition), condition.byte_range());
        }
        let (head, end) = (self.now, self.join(node));
        self.around.push(Around { node, end, again: None, head, has_default: false });
        self.stop(node);
        if let Some(body) = node.child_by_field_name("body") {
            self.statement(body);
        }
        self.go(end);
        if self.around.pop().is_some_and(|a| !a.has_default) {
            self.edge(head, end);
        }
        self.now = end;
    }

    /// A loop's condition; returns its value, if it is constant.
    fn condition(&mut self, node: Node<'t>, lift: Lift<'t>) -> Option<i128> {
        let is_in_parentheses = matches!(lift, Lift::While(_) | Lift::Do(_));
        let inner = if is_in_parentheses { inside(node) } else { node };
        if self.is_target(inner) {
            self.flow.lifts.push(lift);
            let (parts, _) = comma_parts(inner);
            self.sequence(&parts);
        } else if self.unit.constant(node).is_none() {
            self.slot(Slot::Expression(inner));
            self.expression(node);
        }
        self.unit.constant(node)
    }

    fn looped(&mut self, node: Node<'t>, end: usize, again: usize) {
        let head = self.now;
        self.around.push(Around { node, end, again: Some(again), head, has_default: false });
        if super::busy::waits(self.unit, self.function, node) {
            let begin = self.add(StepKind::Join, node.byte_range());
            self.flow.busy.push((node, begin));
        }
        if let Some(body) = node.child_by_field_name("body") {
            self.statement(body);
        }
        self.around.pop();
    }

    fn while_loop(&mut self, node: Node<'t>) {
        if self.unit.prepared.criticals.contains(&node.start_byte()) {
            return self.critical(node);
        }
        self.slot(Slot::Statement(node));
        let (again, end) = (self.join(node), self.join(node));
        self.go(again);
        self.now = again;
        let condition = node.child_by_field_name("condition");
        let value = condition.map(|c| self.condition(c, Lift::While(node)));
        self.leave(condition.zip(value), end, node);
        self.looped(node, end, again);
        self.go(again);
        self.now = end;
    }

    /// Edges out of a loop where its condition does not hold, and into it where it does.
    fn leave(&mut self, condition: Option<(Node<'t>, Option<i128>)>, end: usize, node: Node<'t>) {
        match condition {
            Some((_, Some(0))) => {
                self.go(end);
                self.stop(node);
            }
            Some((condition, None)) => {
                self.add(StepKind::Branch(condition, false), condition.byte_range());
                self.go(end);
            }
            _ => self.endless.push((node, self.now, end)),
        }
    }

    fn do_loop(&mut self, node: Node<'t>) {
        self.slot(Slot::Statement(node));
        let (begin, again, end) = (self.join(node), self.join(node), self.join(node));
        self.go(begin);
        self.now = begin;
        self.looped(node, end, again);
        self.go(again);
        self.now = again;
        let condition = node.child_by_field_name("condition");
        let value = condition.map(|c| self.condition(c, Lift::Do(node)));
        self.leave(condition.zip(value), end, node);
        self.go(begin);
        self.now = end;
    }

    fn for_loop(&mut self, node: Node<'t>) {
        self.slot(Slot::Statement(node));
        if let Some(begin) = node.child_by_field_name("initializer") {
            match begin.kind() {
                "declaration" => self.declare(begin),
                _ => self.parts(node, begin),
            }
        }
        let (again, step, end) = (self.join(node), self.join(node), self.join(node));
        let entry = self.now;
        self.go(again);
        self.now = again;
        let condition = node.child_by_field_name("condition");
        let value = condition.map(|c| self.condition(c, Lift::Condition(node)));
        self.leave(condition.zip(value), end, node);
        if value == Some(None) && begins(self.unit, self.function, node) {
            let body = self.join(node);
            self.go(body);
            self.now = body;
            self.flow.entered.insert(entry, body);
        }
        self.looped(node, end, step);
        self.go(step);
        self.now = step;
        if let Some(update) = node.child_by_field_name("update") {
            self.condition(update, Lift::Step(node));
        }
        self.go(again);
        self.now = end;
    }

    fn critical(&mut self, node: Node<'t>) {
        self.slot(Slot::Statement(node));
        self.flow.criticals.push(node);
        self.critical += 1;
        if let Some(body) = node.child_by_field_name("body") {
            self.statement(body);
        }
        self.critical -= 1;
        let end = node.end_byte();
        self.add(StepKind::CriticalEnd(node), end.saturating_sub(1)..end);
    }

    fn declaration(&mut self, node: Node<'t>) {
        self.slot(Slot::Statement(node));
        self.declare(node);
    }

    fn declare(&mut self, node: Node<'t>) {
        for declarator in fields(node, "declarator") {
            self.expression(declarator);
            let Some(name) = declared(declarator) else { continue };
            let place = name.byte_range();
            let variables = &self.function.variables;
            let Some(index) = variables.iter().position(|v| v.place == place) else { continue };
            let has_value = variables[index].value.is_some() || variables[index].is_static;
            let kind = if has_value { StepKind::Assign(index) } else { StepKind::Declare(index) };
            self.add(kind, place);
        }
    }

    /// What an expression does, in the order of evaluation.
    fn expression(&mut self, node: Node<'t>) {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "sizeof_expression" | "alignof_expression" | "offsetof_expression" => {}
            "call_expression" => self.call(node),
            "assignment_expression" => {
                let sides = [field("right"), field("left")];
                sides.into_iter().flatten().for_each(|n| self.expression(n));
                self.assign(field("left"));
            }
            "update_expression" => {
                self.each(node);
                self.assign(field("argument"));
            }
            "pointer_expression" if self.unit.words(node).starts_with('&') => {
                self.each(node);
                self.assign(field("argument"));
            }
            "binary_expression"
                if field("operator").is_some_and(|o| matches!(o.kind(), "&&" | "||")) =>
            {
                let is_or = field("operator").is_some_and(|o| o.kind() == "||");
                if let Some(left) = field("left") {
                    self.expression(left);
                    self.add(StepKind::Branch(left, is_or), left.byte_range());
                }
                let (left, end) = (self.now, self.join(node));
                self.edge(left, end);
                field("right").into_iter().for_each(|n| self.expression(n));
                self.go(end);
                self.now = end;
            }
            "conditional_expression" => {
                if let Some(condition) = field("condition") {
                    self.expression(condition);
                    self.add(StepKind::Branch(condition, true), condition.byte_range());
                }
                let (head, end) = (self.now, self.join(node));
                for name in ["consequence", "alternative"] {
                    self.now = head;
                    field(name).into_iter().for_each(|n| self.expression(n));
                    self.go(end);
                }
                self.now = end;
            }
            "compound_statement" => {
                self.quiet += 1;
                self.block(node);
                self.quiet -= 1;
            }
            kind if kind.ends_with("_statement") || kind == "declaration" => {
                self.quiet += 1;
                self.statement(node);
                self.quiet -= 1;
            }
            _ => self.each(node),
        }
    }

    fn each(&mut self, node: Node<'t>) {
        for child in children(node) {
            self.expression(child);
        }
    }

    /// The variable that an lvalue is, or is a part of, has a value now.
    fn assign(&mut self, target: Option<Node<'t>>) {
        let Some(mut node) = target.map(bare) else { return };
        while let "field_expression" | "subscript_expression" = node.kind() {
            let Some(inner) = node.child_by_field_name("argument") else { return };
            node = bare(inner);
        }
        if node.kind() == "identifier" {
            self.assign_name(node);
        }
    }

    fn assign_name(&mut self, node: Node<'t>) {
        let name = self.unit.words(node);
        if let Some(index) = self.unit.resolve_index(self.function, name, node.start_byte()) {
            self.add(StepKind::Assign(index), node.byte_range());
        }
    }

    fn call(&mut self, node: Node<'t>) {
        if let Some(arguments) = node.child_by_field_name("arguments") {
            self.each(arguments);
            // A function may fill an array.
            for argument in children(arguments).into_iter().map(bare) {
                let is_array = self
                    .unit
                    .resolve(self.function, self.unit.words(argument), argument.start_byte())
                    .is_some_and(|v| v.declarator.kind() == "array_declarator");
                if argument.kind() == "identifier" && is_array {
                    self.assign_name(argument);
                }
            }
        }
        if self.unit.callee(node) == Some("cread") {
            let arguments = node.child_by_field_name("arguments").map(children);
            self.assign(arguments.and_then(|a| a.get(1).copied()));
        }
        if let Some(called) = node.child_by_field_name("function")
            && called.kind() != "identifier"
        {
            self.expression(called);
        }
        let place = node.byte_range();
        match self.constructs.calls.get(&node.id()) {
            Some((_, Construct::Point(p))) => self.add(StepKind::Point(*p), place),
            Some((_, Construct::Gettime(..))) => self.add(StepKind::Gettime, place),
            Some((_, Construct::Start(_))) => self.add(StepKind::Start(node), place),
            Some(_) => self.now,
            None => self.add(StepKind::Call(node), place),
        };
        if ends_program(self.unit, self.unit.callee(node).unwrap_or("")) {
            self.go(self.flow.exit);
            self.stop(node);
        }
    }
}

/// Whether a function does not return.
pub(super) fn ends_program(unit: &Unit<'_>, callee: &str) -> bool {
    ENDINGS.contains(&callee) && !unit.names.contains(callee)
}

/// What a condition's parentheses hold.
pub(super) fn inside<'t>(node: Node<'t>) -> Node<'t> {
    match (node.kind(), &children(node)[..]) {
        ("parenthesized_expression", [inner]) => *inner,
        _ => node,
    }
}
