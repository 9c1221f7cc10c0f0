//! Constructs whose expressions become statements, so that control can go to a point in them.

use super::edits::Rank;
use super::emit::Emitter;
use super::flow::{Lift, inside};
use super::syntax::{comma_parts, token};
use tree_sitter::Node;

impl<'t> Emitter<'_, 't> {
    pub(super) fn rewrite(&mut self) {
        // Inner loops come later in the list, but never in another one's condition or step.
        for index in 0..self.flow.lifts.len() {
            match self.flow.lifts[index].clone() {
                Lift::Sequence(expression) => self.sequence(expression),
                Lift::Head(statement, expression) => self.head(statement, expression),
                Lift::While(node) => self.while_loop(node),
                Lift::Do(node) => self.do_loop(node, index),
                Lift::Condition(node) => self.condition(node),
                Lift::Step(node) => self.step(node, index),
            }
        }
    }

    /// Turns the commas of an expression into semicolons; returns the last operand.
    fn split(&mut self, expression: Node<'t>) -> Node<'t> {
        let (parts, commas) = comma_parts(expression);
        for comma in commas {
            self.edits.replace(comma.byte_range(), ";");
        }
        parts.last().copied().unwrap_or(expression)
    }

    fn sequence(&mut self, expression: Node<'t>) {
        self.make_block(expression);
        self.split(expression);
    }

    /// Removes a keyword and a parenthesis, which follow again before the last operand.
    fn take_off(&mut self, statement: Node<'t>, keyword: &str, by: &str) {
        for (kind, by) in [(keyword, by), ("(", "")] {
            let parent = match kind {
                "(" => statement.child_by_field_name("condition").unwrap_or(statement),
                _ => statement,
            };
            let parent = if token(parent, kind).is_some() { parent } else { statement };
            if let Some(found) = token(parent, kind) {
                self.edits.replace(found.byte_range(), by);
            }
        }
    }

    fn head(&mut self, statement: Node<'t>, expression: Node<'t>) {
        self.make_block(statement);
        let last = self.split(expression);
        let text = match statement.kind() {
            "return_statement" => {
                if let Some(word) = token(statement, "return") {
                    self.edits.replace(word.byte_range(), "");
                }
                "return "
            }
            "switch_statement" => {
                self.take_off(statement, "switch", "");
                "switch ("
            }
            "for_statement" => {
                for kind in ["for", "("] {
                    if let Some(found) = token(statement, kind) {
                        self.edits.replace(found.byte_range(), "");
                    }
                }
                "for ("
            }
            _ => {
                self.take_off(statement, "if", "");
                "if ("
            }
        };
        self.edits.before(last.byte_range(), Rank::Head, text);
    }

    fn break_unless(&mut self, expression: Node<'t>) {
        let last = self.split(expression);
        self.edits.before(last.byte_range(), Rank::Head, "if (!(");
        self.edits.after(last.byte_range(), Rank::Close, ")) break;");
    }

    fn while_loop(&mut self, node: Node<'t>) {
        let (Some(condition), Some(body)) =
            (node.child_by_field_name("condition"), node.child_by_field_name("body"))
        else {
            return;
        };
        self.take_off(node, "while", "for (;;) {");
        if let Some(close) = token(condition, ")") {
            self.edits.replace(close.byte_range(), "");
        }
        self.break_unless(inside(condition));
        self.edits.after(body.byte_range(), Rank::LoopEnd, " }");
    }

    /// Lets `continue` go to a label; returns the label if there is any.
    fn continues(&mut self, node: Node<'t>, index: usize) -> String {
        let place = node.start_byte();
        let Some(continues) = self.flow.continues.get(&node.id()) else { return String::new() };
        let label = format!("timedc_next_{place}_{index}");
        for statement in continues {
            if let Some(word) = token(*statement, "continue") {
                self.edits.replace(word.byte_range(), &format!("goto {label}"));
            }
        }
        format!(" {label}:;")
    }

    fn do_loop(&mut self, node: Node<'t>, index: usize) {
        let Some(condition) = node.child_by_field_name("condition") else { return };
        let label = self.continues(node, index);
        if let Some(word) = token(node, "do") {
            self.edits.replace(word.byte_range(), "do {");
        }
        self.take_off(node, "while", label.trim_start());
        let last = self.split(inside(condition));
        self.edits.before(last.byte_range(), Rank::Head, "} while (");
    }

    fn condition(&mut self, node: Node<'t>) {
        let (Some(condition), Some(body)) =
            (node.child_by_field_name("condition"), node.child_by_field_name("body"))
        else {
            return;
        };
        self.break_unless(condition);
        let text = self.edits.take(self.unit.text, &condition.byte_range());
        self.edits.replace(condition.byte_range(), "");
        self.edits.before(body.byte_range(), Rank::LoopHead, &format!("{{ {text} "));
        self.edits.after(body.byte_range(), Rank::LoopEnd, " }");
    }

    fn step(&mut self, node: Node<'t>, index: usize) {
        let (Some(update), Some(body)) =
            (node.child_by_field_name("update"), node.child_by_field_name("body"))
        else {
            return;
        };
        let label = self.continues(node, index);
        self.split(update);
        let text = self.edits.take(self.unit.text, &update.byte_range());
        self.edits.replace(update.byte_range(), "");
        self.edits.before(body.byte_range(), Rank::LoopHead, "{ ");
        self.edits.after(body.byte_range(), Rank::LoopEnd, &format!("{label} {text}; }}"));
    }
}
