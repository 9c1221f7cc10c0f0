//! From statements to a program: names become identifiers, formulas become numbers.

use super::declarations::{Declarations, SourceBuffer, SourceMessage};
use super::findings::Findings;
use super::formula::{Expected, FormulaValue, Known};
use super::lexer::{Order, Span, WordComparison};
use super::syntax::{
    Compared, Formula, Named, NamedCondition, NamedGuard, NamedWord, Operation, Statement,
};
use onbeat_model::codes::network_code as codes;
use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, COUNTERS, Condition, FLAGS, Guard, IMMEDIATE, Instruction,
    MessageId, PROGRAM_WORDS, Relation,
};
use onbeat_runtime::network_code::program::BufferRole;
use std::collections::BTreeMap;

/// Labels of a program.
const LABELS_MAX: usize = 2 * PROGRAM_WORDS;

/// An instruction and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// The instruction.
    pub(crate) instruction: Instruction,
    /// Where the text has it.
    pub(crate) span: Span,
}

/// A label and the address that it is at.
#[derive(Clone, Debug)]
pub(crate) struct LabelAt {
    /// Which instruction follows it.
    pub(crate) address: usize,
    /// Where the text has it.
    pub(crate) span: Span,
    /// Whether an instruction names it.
    pub(crate) is_used: bool,
}

/// The instructions of a program, as far as they are right.
#[derive(Debug)]
pub(crate) struct Resolver<'d, 'f> {
    declarations: &'d mut Declarations,
    labels: BTreeMap<String, LabelAt>,
    findings: &'f mut Findings,
}

/// The instructions of all statements, and labels by name. What is wrong is left out.
pub(crate) fn instructions(
    statements: &[Statement],
    declarations: &mut Declarations,
    findings: &mut Findings,
) -> (Vec<Placed>, BTreeMap<String, LabelAt>) {
    let labels = labels(statements, findings);
    let mut resolver = Resolver { declarations, labels, findings };
    let mut placed = Vec::new();
    let mut count = 0;
    for statement in statements {
        let Statement::Instruction(operation, span) = statement else { continue };
        count += 1;
        if count == PROGRAM_WORDS + 1 {
            let message = format!("the program has more than {PROGRAM_WORDS} instructions");
            let help = "a station holds no more: let the program be a loop";
            resolver.findings.error(codes::TOO_MANY_INSTRUCTIONS, message, span, help);
        }
        let instruction = resolver.instruction(operation);
        placed.extend(instruction.map(|instruction| Placed { instruction, span: span.clone() }));
    }
    (placed, resolver.labels)
}

fn labels(statements: &[Statement], findings: &mut Findings) -> BTreeMap<String, LabelAt> {
    let mut labels: BTreeMap<String, LabelAt> = BTreeMap::new();
    let mut address = 0;
    for statement in statements {
        match statement {
            Statement::Instruction(..) => address += 1,
            Statement::Label(name) => {
                if let Some(first) = labels.get(&name.text) {
                    let message = format!("the label `{}` is there twice", name.text);
                    findings.duplicate(codes::DUPLICATE_LABEL, message, &name.span, &first.span);
                    continue;
                }
                if labels.len() == LABELS_MAX {
                    let message = format!("the program has more than {LABELS_MAX} labels");
                    let help = "remove labels that nothing names";
                    findings.error(codes::TOO_MANY_NAMES, message, &name.span, help);
                    break;
                }
                let span = name.span.clone();
                let label = LabelAt { address, span, is_used: false };
                labels.insert(name.text.clone(), label);
            }
            _ => {}
        }
    }
    labels
}

impl Resolver<'_, '_> {
    fn instruction(&mut self, operation: &Operation) -> Known<Instruction> {
        Some(match operation {
            Operation::Nop => Instruction::Nop,
            Operation::Halt => Instruction::Halt,
            Operation::SyncMaster => Instruction::SyncMaster,
            Operation::Create(buffer) => Instruction::Create { buffer: self.buffer(buffer)?.0 },
            Operation::Send(message) => Instruction::Send { message: self.message(message)?.0 },
            Operation::Receive(message, buffer) => return self.receive(message, buffer),
            Operation::Future(label, delay) => {
                let target = self.label(label);
                let delay = self.declarations.formulas.cycles(delay, "a delay", 0, self.findings);
                Instruction::Future { target: target?, delay: delay? }
            }
            Operation::SyncSlave(timeout) => {
                let formulas = &mut self.declarations.formulas;
                let cycles = formulas.cycles(timeout, "a timeout", 1, self.findings)?;
                if cycles == 0 {
                    let message = "a timeout of 0 sees no round".to_owned();
                    let help = "write the longest time until the next round";
                    self.findings.error(codes::TIMEOUT, message, &timeout.span, help);
                }
                Instruction::SyncSlave { timeout: cycles }
            }
            Operation::Branch(guard, label) => {
                let guard = self.guard(guard);
                let target = self.label(label);
                Instruction::Branch { guard: guard?, target: target? }
            }
        })
    }

    fn receive(&mut self, message: &Named, buffer: &Named) -> Known<Instruction> {
        let from = self.message(message);
        let into = self.buffer(buffer);
        let ((message_id, from), (buffer_id, into)) = (from?, into?);
        if into.role == BufferRole::Output {
            let wrong = format!("`{}` is an output: the application writes it", buffer.text);
            let help = "declare an `input` for what is received";
            self.findings.error(codes::INTO_OUTPUT, wrong, &buffer.span, help);
        }
        if let (Some(has), Some(needs)) = (into.words, from.words)
            && has != needs
        {
            let wrong =
                format!("`{}` has {needs} words, and `{}` has {has}", message.text, buffer.text);
            let help = format!("declare `input {}[{needs}]`", buffer.text);
            self.findings.error(codes::RECEIVE_LENGTH, wrong, &buffer.span, &help);
        }
        Some(Instruction::Receive { message: message_id, buffer: buffer_id })
    }

    fn buffer(&mut self, name: &Named) -> Known<(BufferId, SourceBuffer)> {
        let declarations = &mut *self.declarations;
        if let Some(at) = declarations.buffer_names.get(&name.text).copied() {
            let buffer = &mut declarations.buffers[at];
            buffer.is_used = true;
            // There are no more than identifiers, or it has been said.
            return Some((BufferId(at as u8), buffer.clone()));
        }
        let known = declarations.buffer_names.keys().map(String::as_str);
        let otherwise = "declare it: `output NAME[WORDS]` or `input NAME[WORDS]`";
        let what = (codes::UNKNOWN_BUFFER, "buffer");
        self.findings.unknown(what, &name.text, &name.span, known, otherwise);
        None
    }

    fn message(&mut self, name: &Named) -> Known<(MessageId, SourceMessage)> {
        let declarations = &mut *self.declarations;
        if let Some(message) = declarations.messages.get_mut(&name.text) {
            message.is_used = true;
            return Some((MessageId(message.id?), message.clone()));
        }
        let known = declarations.messages.keys().map(String::as_str);
        let otherwise = "declare it: `message NAME = ID[WORDS]`";
        let what = (codes::UNKNOWN_MESSAGE, "message");
        self.findings.unknown(what, &name.text, &name.span, known, otherwise);
        None
    }

    fn label(&mut self, name: &Named) -> Known<Address> {
        if let Some(label) = self.labels.get_mut(&name.text) {
            label.is_used = true;
            // One behind the last possible address is one of too many instructions.
            return Address::new(label.address.min(PROGRAM_WORDS - 1));
        }
        let known = self.labels.keys().map(String::as_str);
        let otherwise = "write it and `:` before the instruction that is meant";
        let what = (codes::UNKNOWN_LABEL, "label");
        self.findings.unknown(what, &name.text, &name.span, known, otherwise);
        None
    }

    fn guard(&mut self, guard: &NamedGuard) -> Known<Guard> {
        let mut negated = guard.negated;
        let condition = match &guard.condition {
            NamedCondition::Always => Condition::Always,
            NamedCondition::Count(counter, every) => {
                let counter = self.number(counter, 0, i64::from(COUNTERS) - 1, &COUNTER);
                let every = self.number(every, 1, u32::MAX.into(), &COUNT);
                Condition::Count { counter: counter? as u8, every: every? as u32 }
            }
            NamedCondition::Fresh(message) => Condition::Fresh(self.message(message)?.0),
            NamedCondition::Received => Condition::Received,
            NamedCondition::SyncTimeout => Condition::SyncTimeout,
            NamedCondition::Overrun => Condition::Overrun,
            NamedCondition::Flag(flag) => {
                Condition::Flag(self.number(flag, 0, i64::from(FLAGS) - 1, &FLAG)? as u8)
            }
            NamedCondition::Transmitting => Condition::Transmitting,
            NamedCondition::LinkUp => Condition::LinkUp,
            NamedCondition::Compare(left, comparison, right) => {
                let (relation, is_opposite) = relation(*comparison);
                negated ^= is_opposite;
                self.comparison(left, (*comparison, relation), right)?
            }
        };
        Some(Guard { negated, condition })
    }

    fn comparison(
        &mut self,
        left: &NamedWord,
        (comparison, relation): (WordComparison, Relation),
        right: &Compared,
    ) -> Known<Condition> {
        let word = self.word(left);
        match right {
            Compared::Word(right) => {
                let right = self.word(right);
                Some(Condition::Words { left: word?, relation, right: right? })
            }
            Compared::Constant(formula) => {
                let value = self.compared(formula, comparison.is_unsigned);
                Some(Condition::Immediate { word: word?, relation, value: value? })
            }
        }
    }

    fn compared(&mut self, formula: &Formula, is_unsigned: bool) -> Known<i32> {
        let value = self.declarations.formulas.value(formula, self.findings)?;
        let FormulaValue::Number(number) = value else {
            let message = format!("words are numbers, and {value} is a time");
            let help = "write a number without a unit, or divide by a time";
            self.findings.error(codes::TYPE, message, &formula.span, help);
            return None;
        };
        let number_of_word = match u32::try_from(number) {
            Ok(unsigned) if is_unsigned => Some(unsigned as i32),
            _ => i32::try_from(number).ok(),
        };
        let value = number_of_word.filter(|value| IMMEDIATE.contains(value));
        if value.is_none() {
            let message = format!("{number} has more than 24 bits");
            let help = format!(
                "write {} to {}, or compare with a word of another buffer",
                IMMEDIATE.start(),
                IMMEDIATE.end()
            );
            self.findings.error(codes::COMPARED, message, &formula.span, &help);
        }
        value
    }

    fn word(&mut self, word: &NamedWord) -> Known<BufferWord> {
        let buffer = self.buffer(&word.buffer);
        let words = buffer.as_ref().and_then(|(_, buffer)| buffer.words).unwrap_or(u16::MAX);
        let most = i64::from(words.min(256)) - 1;
        let index = self.number(&word.index, 0, most, &INDEX);
        Some(BufferWord { buffer: buffer?.0, index: index? as u8 })
    }

    fn number(&mut self, formula: &Formula, least: i64, most: i64, what: &Expected) -> Known<i64> {
        self.declarations.formulas.in_range(formula, least..=most, what, self.findings)
    }
}

const COUNTER: Expected = Expected { code: codes::COUNTER, what: "a counter" };
const COUNT: Expected = Expected { code: codes::COUNT, what: "a count" };
const FLAG: Expected = Expected { code: codes::FLAG, what: "a flag" };
const INDEX: Expected = Expected { code: codes::INDEX, what: "an index" };

/// The relation of a comparison, and whether it is the opposite of it.
pub(crate) fn relation(comparison: WordComparison) -> (Relation, bool) {
    let (less, at_most) = match comparison.is_unsigned {
        false => (Relation::Less, Relation::AtMost),
        true => (Relation::Below, Relation::NotAbove),
    };
    match comparison.order {
        Order::Equal => (Relation::Equal, false),
        Order::Unequal => (Relation::Equal, true),
        Order::Less => (less, false),
        Order::AtLeast => (less, true),
        Order::AtMost => (at_most, false),
        Order::Greater => (at_most, true),
    }
}
