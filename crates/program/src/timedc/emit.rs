//! A function's statements, translated.

use super::construct::{Construct, Constructs, Deadline, TimingPoint, behind_comma};
use super::edits::{Edits, Rank};
use super::flow::{Flow, Slot, StepKind};
use super::guard::{Action, Guards};
use super::idle::{Idle, ROUND_NS};
use super::syntax::{children, declared, fields, last_token, token, walk};
use super::unit::{Function, Role, Unit, opening};
use super::{Target, codes};
use onbeat_model::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use tree_sitter::Node;

/// Emits one function.
pub(super) struct Emitter<'u, 't> {
    pub unit: &'u Unit<'t>,
    pub constructs: &'u Constructs<'t>,
    pub function: &'u Function<'t>,
    pub flow: &'u Flow<'t>,
    pub guards: &'u Guards,
    /// Where `skipdelay` goes.
    pub skips: &'u BTreeMap<usize, usize>,
    pub edits: &'u mut Edits,
    pub diagnostics: Vec<Diagnostic>,
    pub braced: BTreeSet<usize>,
    /// What the body begins with, for `exectime`.
    pub work: Option<String>,
    /// Loops whose iterations take an undeclared time.
    pub idle: &'u [Idle<'t>],
}

/// `timedc_span(10, 1000000)`.
pub(super) fn guard_span(unit: &Unit<'_>, point: &TimingPoint<'_>) -> String {
    let number = point.guard().map_or("0", |g| unit.words(g.node));
    let number = number.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("timedc_span({number}, {})", point.unit.scale())
}

impl<'t> Emitter<'_, 't> {
    pub(super) fn run(&mut self) {
        let labels = self.labels();
        self.check_targets(&labels);
        for point in labels.keys() {
            if let Some(place) = self.label_place(self.constructs.points[*point].call) {
                self.make_block(place);
                let text = format!("timedc_{point}:; ");
                self.edits.before(place.byte_range(), Rank::Label, &text);
            }
        }
        let actions: Vec<(usize, Action)> =
            self.guards.actions.iter().map(|(s, a)| (*s, *a)).collect();
        for (slot, action) in actions {
            self.action(self.flow.slots[slot], action);
        }
        let has_frame = !labels.is_empty()
            || !self.flow.criticals.is_empty()
            || self.guards.actions.values().any(|a| *a == Action::End);
        if has_frame || self.unit.options.target == Target::FreeRtos {
            self.synchronise(has_frame);
        }
        if self.unit.options.target == Target::Posix {
            let text = format!(" timedc_work({ROUND_NS}, {ROUND_NS});");
            self.idle.iter().for_each(|idle| self.loop_body(idle.node, &text, false));
        }
        self.begin(has_frame);
        self.end();
        for critical in &self.flow.criticals {
            let word = critical.start_byte()..critical.start_byte() + 8;
            self.edits.replace(word, "");
            if let Some(open) = critical.child_by_field_name("body").and_then(|b| token(b, "{")) {
                self.edits.after(open.byte_range(), Rank::Open, " TIMEDC_CRITICAL;");
            }
        }
        for (skip, point) in self.skips {
            let Some(node) = self.flow.skips.iter().find(|n| n.id() == *skip) else { continue };
            let text = format!("{{ timedc_skip(); goto timedc_{point}; }}");
            self.edits.replace(node.byte_range(), &text);
        }
        self.rewrite();
    }

    /// Points that control is made to go to, and from where.
    fn labels(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (slot, action) in &self.guards.actions {
            if let Action::Begin(point) | Action::Renew(point) = action {
                let at = self.flow.slots[*slot].node().start_byte();
                found.entry(*point).or_default().push(at);
            }
        }
        for (skip, point) in self.skips {
            if let Some(node) = self.flow.skips.iter().find(|n| n.id() == *skip) {
                found.entry(*point).or_default().push(node.start_byte());
            }
        }
        found
    }

    /// The statement, or the part that becomes one, that a point is in.
    fn label_place(&self, call: Node<'t>) -> Option<Node<'t>> {
        let places: BTreeSet<usize> = self
            .flow
            .slots
            .iter()
            .filter(|s| !matches!(s, Slot::Expression(_)))
            .map(|s| s.node().id())
            .collect();
        let mut node = Some(call);
        while let Some(now) = node {
            if places.contains(&now.id()) {
                return Some(now);
            }
            node = now.parent();
        }
        None
    }

    /// Makes sure that text may stand before a statement.
    pub(super) fn make_block(&mut self, node: Node<'t>) {
        let mut outer = node;
        while let Some(parent) = outer.parent() {
            match parent.kind() {
                "labeled_statement" | "case_statement" => outer = parent,
                "if_statement" | "else_clause" | "while_statement" | "do_statement"
                | "for_statement" | "switch_statement"
                    if outer.kind().ends_with("statement") || outer.kind() == "declaration" =>
                {
                    let is_block = outer.kind() == "compound_statement";
                    if !is_block && self.braced.insert(outer.id()) {
                        self.edits.before(outer.byte_range(), Rank::Open, "{ ");
                        self.edits.after(outer.byte_range(), Rank::Brace, " }");
                    }
                    return;
                }
                // A part of an expression: its statement is what needs the block.
                kind if outer.kind() != "compound_statement"
                    && !outer.kind().ends_with("_statement")
                    && outer.kind() != "declaration"
                    && kind != "compound_statement" =>
                {
                    outer = parent;
                }
                _ => return,
            }
        }
    }

    fn action(&mut self, slot: Slot<'t>, action: Action) {
        let text = match action {
            Action::End => "TIMEDC_UNGUARD();".to_owned(),
            Action::Begin(p) | Action::Renew(p) => {
                let name = if matches!(action, Action::Renew(_)) { "REGUARD" } else { "GUARD" };
                let span = guard_span(self.unit, &self.constructs.points[p]);
                format!("TIMEDC_{name}(&timedc_points[{p}], {span}, timedc_{p});")
            }
        };
        let node = slot.node();
        match slot {
            Slot::Statement(_) | Slot::Part(_) => {
                self.make_block(node);
                self.edits.before(node.byte_range(), Rank::Guard, &format!("{text} "));
            }
            Slot::Expression(_) => {
                let text = format!("__extension__({{ {text} }}), (");
                self.edits.before(node.byte_range(), Rank::Guard, &text);
                self.edits.after(node.byte_range(), Rank::Close, ")");
            }
        }
    }

    /// Brings variables to memory after each statement, or looks for aborts there.
    fn synchronise(&mut self, has_frame: bool) {
        let text = match self.unit.options.target {
            Target::Posix => " TIMEDC_SYNC();",
            Target::FreeRtos => " timedc_poll();",
        };
        for index in 0..self.flow.statements.len() {
            let node = self.flow.statements[index];
            match node.kind() {
                "expression_statement" if !children(node).is_empty() => {
                    let is_skip = self.flow.skips.iter().any(|s| s.id() == node.id());
                    if !is_skip {
                        self.make_block(node);
                        self.edits.after(node.byte_range(), Rank::Close, text);
                    }
                }
                "declaration" if has_frame => self.keep(node),
                "while_statement" | "do_statement" | "for_statement" => {
                    let is_critical = self.flow.criticals.iter().any(|c| c.id() == node.id());
                    if !is_critical {
                        self.loop_body(node, text, has_frame);
                    }
                }
                _ => {}
            }
        }
    }

    fn loop_body(&mut self, node: Node<'t>, sync: &str, has_frame: bool) {
        let Some(body) = node.child_by_field_name("body") else { return };
        let mut text = sync.to_owned();
        if let Some(declaration) = node.child_by_field_name("initializer")
            && declaration.kind() == "declaration"
            && has_frame
        {
            text.push_str(&self.kept(declaration));
            self.no_register(declaration);
        }
        match token(body, "{") {
            Some(open) if body.kind() == "compound_statement" => {
                self.edits.after(open.byte_range(), Rank::Body, &text);
            }
            _ => {
                if self.braced.insert(body.id()) {
                    self.edits.before(body.byte_range(), Rank::Open, "{ ");
                    self.edits.after(body.byte_range(), Rank::Brace, " }");
                }
                let text = format!("{} ", text.trim_start());
                self.edits.before(body.byte_range(), Rank::Body, &text);
            }
        }
    }

    /// ` TIMEDC_KEEP(x);` for what a declaration declares.
    fn kept(&self, declaration: Node<'t>) -> String {
        let mut text = String::new();
        for declarator in fields(declaration, "declarator") {
            let Some(name) = declared(declarator) else { continue };
            let found = self.function.variables.iter().find(|v| v.place == name.byte_range());
            let is_kept = found.is_some_and(|v| {
                !v.is_static && v.declarator.kind() != "function_declarator"
                    || is_pointer(v.declarator)
            });
            if is_kept {
                text.push_str(&format!(" TIMEDC_KEEP({});", self.unit.words(name)));
            }
        }
        text
    }

    fn keep(&mut self, declaration: Node<'t>) {
        let text = self.kept(declaration);
        if !text.is_empty() {
            self.make_block(declaration);
            self.edits.after(declaration.byte_range(), Rank::Close, &text);
        }
        self.no_register(declaration);
    }

    /// The address of a register variable cannot be had.
    fn no_register(&mut self, declaration: Node<'t>) {
        for child in children(declaration) {
            if child.kind() == "storage_class_specifier" && self.unit.words(child) == "register" {
                self.edits.replace(child.byte_range(), "");
            }
        }
    }

    /// What the function's body begins with.
    fn begin(&mut self, has_frame: bool) {
        let mut text = String::new();
        if self.function.role == Role::Main {
            text.push_str(" TIMEDC_MAIN(&timedc_task_main);");
        }
        if self.constructs.counts_from_entry(self.unit, self.function) {
            // Before the frame: what is left last is cleaned up first.
            text.push_str(" TIMEDC_ORIGIN;");
        }
        if has_frame {
            text.push_str(" TIMEDC_FRAME;");
            let list = self.function.declarator.child_by_field_name("parameters").map(children);
            let old = children(self.function.definition);
            let old = old.into_iter().filter(|n| n.kind() == "declaration");
            for parameter in list.unwrap_or_default().into_iter().chain(old) {
                text.push_str(&self.kept(parameter));
                self.no_register(parameter);
            }
        }
        text.push_str(self.work.as_deref().unwrap_or(""));
        if let (false, Some(open)) = (text.is_empty(), opening(self.function.body)) {
            self.edits.after(open - 1..open, Rank::Body, &text);
        }
    }

    /// Tasks return a pointer, main an int.
    fn end(&mut self) {
        let is_void_main = self.function.role == Role::Main
            && self.function.definition.child_by_field_name("type").is_some_and(|t| {
                self.unit.words(t) == "void" && self.function.declarator.parent() == t.parent()
            });
        if is_void_main && let Some(kind) = self.function.definition.child_by_field_name("type") {
            self.edits.replace(kind.byte_range(), "int");
        }
        if self.function.role != Role::Task && !is_void_main {
            return;
        }
        for node in &self.flow.statements {
            if node.kind() == "return_statement"
                && children(*node).is_empty()
                && let Some(word) = token(*node, "return")
            {
                self.edits.after(word.byte_range(), Rank::Close, " 0");
            }
        }
        if self.flow.falls_off
            && let Some(close) = last_token(self.function.body, "}")
        {
            self.edits.before(close.byte_range(), Rank::Open, "return 0; ");
        }
    }

    /// Whether control can be made to go to the points that it has to go to.
    fn check_targets(&mut self, labels: &BTreeMap<usize, Vec<usize>>) {
        for (point, sources) in labels {
            let call = self.constructs.points[*point].call;
            let in_critical =
                self.flow.steps.iter().any(|s| s.kind == StepKind::Point(*point) && s.in_critical);
            let wrong = match self.label_place(call) {
                _ if in_critical => Some((call, "in a critical block")),
                None => Some((call, "in a statement expression")),
                Some(place) => self.in_the_middle(call, place),
            };
            let wrong = wrong.or_else(|| self.behind_scope(call, sources));
            let Some((cause, reason)) = wrong else { continue };
            let text = format!("after an abort, control cannot continue at a point {reason}");
            let mut found = Diagnostic::error(
                codes::CONTINUE,
                text,
                self.unit.at(call.byte_range()),
                "control must continue here",
            )
            .help("write the point as a separate statement");
            if cause.id() != call.id() {
                found = found.related(self.unit.at(cause.byte_range()), "because of this");
            }
            self.diagnostics.push(found);
        }
    }

    /// What would be done again, or not be done, if control went from before `place` to the point.
    fn in_the_middle(&self, call: Node<'t>, place: Node<'t>) -> Option<(Node<'t>, &'static str)> {
        let mut inner = call;
        while inner.id() != place.id() {
            let outer = inner.parent()?;
            let same = |n: &Node<'t>| n.id() == inner.id();
            match outer.kind() {
                "compound_statement" => return Some((outer, "in a statement expression")),
                "conditional_expression" if !fields(outer, "condition").iter().any(same) => {
                    return Some((outer, "that a condition may leave out"));
                }
                "binary_expression"
                    if token(outer, "&&").or(token(outer, "||")).is_some()
                        && !fields(outer, "left").iter().any(same) =>
                {
                    return Some((outer, "that a condition may leave out"));
                }
                "binary_expression" if token(outer, "&&").or(token(outer, "||")).is_some() => {}
                "conditional_expression"
                | "if_statement"
                | "switch_statement"
                | "for_statement"
                | "while_statement"
                | "do_statement" => {}
                _ => {
                    let comma = outer.kind() == "comma_expression" || outer.kind() == "declaration";
                    for sibling in children(outer) {
                        if comma && sibling.start_byte() > inner.start_byte() {
                            continue;
                        }
                        if sibling.id() != inner.id()
                            && let Some(effect) = effect(sibling)
                        {
                            return Some((effect, "in the middle of an expression"));
                        }
                    }
                }
            }
            inner = outer;
        }
        None
    }

    /// A variable-length array, or a variable with a cleanup, between a source and the point.
    fn behind_scope(&self, call: Node<'t>, sources: &[usize]) -> Option<(Node<'t>, &'static str)> {
        let at = call.start_byte();
        for variable in self.function.variables.iter().filter(|v| !v.is_parameter && !v.is_static) {
            let declaration = variable.declarator.parent().map_or(0, |n| n.start_byte());
            let has_cleanup = self.unit.prepared.cleanups.iter().any(|c| {
                (declaration..variable.scope.start + 200).contains(c)
                    && !self.unit.text[declaration.min(*c)..*c].contains(';')
            });
            let reason = match () {
                () if self.is_variable_length(variable.declarator) => {
                    "behind a variable-length array"
                }
                () if has_cleanup => "behind a variable with a cleanup",
                () => continue,
            };
            let outside = |s: &usize| !variable.scope.contains(s);
            if variable.scope.contains(&at) && sources.iter().any(outside) {
                return Some((variable.declarator, reason));
            }
        }
        None
    }

    fn is_variable_length(&self, declarator: Node<'t>) -> bool {
        let mut found = false;
        walk(declarator, |node| {
            if node.kind() == "array_declarator"
                && let Some(size) = node.child_by_field_name("size")
            {
                let text = self.unit.words(size);
                found |= self.unit.constant(size).is_none() && !text.contains("sizeof");
            }
            node.kind() != "parameter_list"
        });
        found
    }

    /// The edits of the calls that are constructs.
    pub(super) fn calls(&mut self, order: &[usize]) {
        for id in order {
            let Some((call, construct)) = self.constructs.calls.get(id) else { continue };
            let (Some(name), Some(list)) =
                (call.child_by_field_name("function"), call.child_by_field_name("arguments"))
            else {
                continue;
            };
            match construct {
                Construct::Point(index) => self.point(*index, name, list),
                Construct::Start(task) => {
                    let text = format!("timedc_start_{task}");
                    self.edits.replace(name.byte_range(), &text);
                }
                Construct::Gettime(unit, node) => {
                    self.edits.replace(name.byte_range(), "timedc_gettime");
                    self.edits.replace(node.byte_range(), &unit.0.to_string());
                }
                Construct::Policy(policy, node) => {
                    self.edits.replace(name.byte_range(), "timedc_spolicy");
                    self.edits.replace(node.byte_range(), policy);
                }
                Construct::Aperiodic(length, unit, node) => {
                    self.edits.replace(name.byte_range(), "timedc_aperiodic");
                    self.edits.before(length.node.byte_range(), Rank::Open, "timedc_span(");
                    let rest = behind_comma(length.node, *node);
                    self.edits.replace(rest, &format!(", {})", unit.scale()));
                }
                Construct::Priority => {
                    self.edits.replace(name.byte_range(), "timedc_spriority");
                }
            }
        }
    }

    fn point(&mut self, index: usize, name: Node<'t>, list: Node<'t>) {
        let point = &self.constructs.points[index];
        let Some(open) = token(list, "(") else { return };
        let scale = point.unit.scale();
        self.edits.replace(name.byte_range(), "timedc_point");
        let text = format!("&timedc_points[{index}], timedc_span(");
        self.edits.after(open.byte_range(), Rank::Open, &text);
        let period = point.period.node;
        let last = match point.deadline {
            Deadline::Same => format!(", {scale}), TIMEDC_SAME"),
            Deadline::None(node) => {
                self.edits.after(period.byte_range(), Rank::Close, &format!(", {scale})"));
                self.edits.replace(node.byte_range(), "TIMEDC_INFTY");
                String::new()
            }
            Deadline::Length(length) => {
                self.edits.after(period.byte_range(), Rank::Close, &format!(", {scale})"));
                self.edits.before(length.node.byte_range(), Rank::Open, "timedc_span(");
                format!(", {scale})")
            }
        };
        let previous = match point.deadline {
            Deadline::Same => period,
            Deadline::None(node) => node,
            Deadline::Length(length) => length.node,
        };
        match point.unit_node {
            Some(unit) => self.edits.replace(behind_comma(previous, unit), &last),
            None => self.edits.after(period.byte_range(), Rank::Close, &last),
        }
    }
}

/// The first thing in an expression that does something.
fn effect<'t>(node: Node<'t>) -> Option<Node<'t>> {
    let mut found = None;
    walk(node, |inner| {
        let acts = matches!(
            inner.kind(),
            "call_expression"
                | "assignment_expression"
                | "update_expression"
                | "gnu_asm_expression"
        );
        if acts && found.is_none() {
            found = Some(inner);
        }
        !matches!(inner.kind(), "sizeof_expression" | "alignof_expression")
    });
    found
}

/// Whether a declarator with parameters declares a pointer to a function.
fn is_pointer(declarator: Node<'_>) -> bool {
    declarator
        .child_by_field_name("declarator")
        .is_some_and(|d| d.kind() == "parenthesized_declarator")
}
