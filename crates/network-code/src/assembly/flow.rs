//! Where control goes, and what is certain there: what is in the send buffer, which countdown runs.
//! Guards may have any value; what needs more than that is the verifier's.

use super::findings::Findings;
use super::lexer::Span;
use super::resolver::Placed;
use onbeat_model::codes::network_code as codes;
use onbeat_runtime::network_code::instruction::{Address, Condition, Instruction};
use onbeat_runtime::network_code::program::StationProgram;
use std::collections::{BTreeMap, BTreeSet};

/// What is in the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendBuffer {
    /// Nothing.
    Empty,
    /// So many words.
    Words(u16),
    /// One or the other, by the path.
    Any,
}

/// Countdowns that may run: numbers of the labels that `future` names, and one for none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Countdowns(Vec<u64>);

impl Countdowns {
    fn of(number: usize, count: usize) -> Self {
        let mut set = Self(vec![0; count.div_ceil(64)]);
        set.0[number / 64] |= 1 << (number % 64);
        set
    }

    fn has(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Whether it is larger now.
    fn join(&mut self, other: &Self) -> bool {
        let mut is_larger = false;
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            is_larger |= *other & !*mine != 0;
            *mine |= other;
        }
        is_larger
    }

    fn has_any_label(&self) -> bool {
        self.0
            .iter()
            .enumerate()
            .any(|(at, word)| if at == 0 { word >> 1 != 0 } else { *word != 0 })
    }
}

/// The number of no countdown.
const NONE: usize = 0;

/// What holds at the issue of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FlowState {
    send: SendBuffer,
    countdowns: Countdowns,
}

impl FlowState {
    fn join(&mut self, other: &Self) -> bool {
        let is_larger = self.countdowns.join(&other.countdowns);
        if self.send == other.send || self.send == SendBuffer::Any {
            return is_larger;
        }
        self.send = SendBuffer::Any;
        true
    }
}

/// The program with what is known at each address.
struct ControlFlow<'p> {
    program: &'p StationProgram,
    placed: &'p [Placed],
    /// The labels that `future` names; number 0 is none.
    targets: Vec<Address>,
    /// What holds at each instruction, if it is reached.
    states: Vec<Option<FlowState>>,
}

/// Finds what is certainly wrong in a program whose instructions are all right, and what is never
/// reached.
pub(crate) fn check(program: &StationProgram, placed: &[Placed], findings: &mut Findings) {
    let named: BTreeSet<Address> = (placed.iter())
        .filter_map(|placed| match placed.instruction {
            Instruction::Future { target, .. } => Some(target),
            _ => None,
        })
        .collect();
    let states = vec![None; placed.len()];
    let targets = named.into_iter().collect();
    let mut flow = ControlFlow { program, placed, targets, states };
    flow.run();
    flow.report(findings);
    flow.loops(findings);
    flow.unreachable(findings);
}

/// Where control may go from an instruction that is no `halt`: addresses, which may be behind the
/// end.
fn successors(address: usize, instruction: Instruction) -> impl Iterator<Item = usize> {
    let (falls, jumps) = match instruction {
        Instruction::Halt => (false, None),
        Instruction::Branch { guard, target } => match (guard.condition, guard.negated) {
            (Condition::Always, false) => (false, Some(target.index())),
            (Condition::Always, true) => (true, None),
            _ => (true, Some(target.index())),
        },
        _ => (true, None),
    };
    falls.then_some(address + 1).into_iter().chain(jumps)
}

impl ControlFlow<'_> {
    fn run(&mut self) {
        let countdowns = Countdowns::of(NONE, self.targets.len() + 1);
        let start = FlowState { send: SendBuffer::Empty, countdowns };
        let mut ahead = BTreeSet::new();
        if let Some(first) = self.states.first_mut() {
            *first = Some(start);
            ahead.insert(0);
        }
        while let Some(address) = ahead.pop_first() {
            let Some(state) = self.states[address].clone() else { continue };
            let instruction = self.placed[address].instruction;
            let after = self.after(&state, instruction);
            let next: Vec<usize> = match instruction {
                Instruction::Halt => self.continued(&state).collect(),
                other => successors(address, other).collect(),
            };
            for next in next {
                let Some(slot) = self.states.get_mut(next) else { continue };
                let is_new = match slot {
                    Some(known) => known.join(&after),
                    None => {
                        *slot = Some(after.clone());
                        true
                    }
                };
                if is_new {
                    ahead.insert(next);
                }
            }
        }
    }

    /// Where `halt` continues.
    fn continued(&self, state: &FlowState) -> impl Iterator<Item = usize> {
        let targets = self.targets.iter().enumerate();
        targets.filter(|(at, _)| state.countdowns.has(at + 1)).map(|(_, target)| target.index())
    }

    fn after(&self, state: &FlowState, instruction: Instruction) -> FlowState {
        let count = self.targets.len() + 1;
        let mut after = state.clone();
        match instruction {
            Instruction::Create { buffer } => {
                let words = self.program.buffer(buffer).map_or(0, |buffer| buffer.words);
                after.send = SendBuffer::Words(words);
            }
            Instruction::Send { .. } => after.send = SendBuffer::Empty,
            Instruction::Future { target, .. } => {
                let number = self.targets.binary_search(&target).map_or(NONE, |at| at + 1);
                after.countdowns = Countdowns::of(number, count);
            }
            Instruction::Halt => after.countdowns = Countdowns::of(NONE, count),
            _ => {}
        }
        after
    }

    fn report(&self, findings: &mut Findings) {
        for (address, (placed, state)) in self.placed.iter().zip(&self.states).enumerate() {
            let Some(state) = state else { continue };
            let at = &placed.span;
            match placed.instruction {
                Instruction::Send { message } => {
                    let words = self.program.message(message).map_or(0, |message| message.words);
                    sent(state.send, words, at, findings);
                }
                Instruction::Halt if !state.countdowns.has_any_label() => {
                    let message = "`halt` is reached without a countdown".to_owned();
                    let help = "start one by `future LABEL, DELAY` before it";
                    findings.error(codes::NO_FUTURE, message, at, help);
                }
                Instruction::Future { .. } if !state.countdowns.has(NONE) => {
                    let message = "an earlier countdown is always replaced here".to_owned();
                    let help = "wait for it by `halt`, or remove its `future`";
                    findings.error(codes::SECOND_FUTURE, message, at, help);
                }
                _ => {}
            }
            let mut next = successors(address, placed.instruction);
            if next.any(|next| next == self.placed.len()) {
                let message = "control runs past the last instruction".to_owned();
                let help = "end the program with `goto LABEL` or `halt`";
                findings.error(codes::END, message, at, help);
            }
        }
    }

    /// Loops of instructions of which none waits.
    fn loops(&self, findings: &mut Findings) {
        let waits = |at: usize| {
            matches!(
                self.placed[at].instruction,
                Instruction::Halt | Instruction::SyncMaster | Instruction::SyncSlave { .. }
            )
        };
        let next = |at: usize| -> Vec<usize> {
            let is_in = self.states[at].is_some() && !waits(at);
            let all = successors(at, self.placed[at].instruction).filter(|_| is_in);
            all.filter(|next| *next < self.placed.len() && !waits(*next)).collect()
        };
        for (from, to) in back_edges(self.placed.len(), &next) {
            let message = "this loop neither halts nor synchronises".to_owned();
            let help = "wait in it: `future` and `halt`, or `sync`";
            let first = &self.placed[to].span;
            findings.loops(message, &self.placed[from].span, first, help);
        }
    }

    fn unreachable(&self, findings: &mut Findings) {
        let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
        for (address, state) in self.states.iter().enumerate() {
            if state.is_some() {
                continue;
            }
            match runs.last_entry() {
                Some(mut run) if *run.get() == address => _ = run.insert(address + 1),
                _ => _ = runs.insert(address, address + 1),
            }
        }
        for (first, end) in runs {
            let message = match end - first {
                1 => "this instruction is never reached".to_owned(),
                count => format!("{count} instructions from here on are never reached"),
            };
            let at = &self.placed[first].span;
            findings.warning(codes::UNREACHABLE, message, at, "remove them, or branch to them");
        }
    }
}

fn sent(send: SendBuffer, words: u16, at: &Span, findings: &mut Findings) {
    match send {
        SendBuffer::Empty => {
            let message = "the send buffer is empty here".to_owned();
            let help = "fill it by `create BUFFER` before each `send`";
            findings.error(codes::NOTHING_CREATED, message, at, help);
        }
        SendBuffer::Words(created) if created != words => {
            let message = format!("the message has {words} words, the send buffer {created}");
            let help = format!("`create` a buffer of {words} words");
            findings.error(codes::SEND_LENGTH, message, at, &help);
        }
        SendBuffer::Words(_) | SendBuffer::Any => {}
    }
}

/// For each loop of a graph at least one edge that closes it: from where, and to where.
fn back_edges(count: usize, next: &impl Fn(usize) -> Vec<usize>) -> Vec<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        Not,
        Open,
        Done,
    }
    let mut visits = vec![Visit::Not; count];
    let mut found = Vec::new();
    for start in 0..count {
        if visits[start] != Visit::Not {
            continue;
        }
        visits[start] = Visit::Open;
        // Without recursion: a path may be as long as the program.
        let mut path = vec![(start, next(start))];
        while let Some((at, ahead)) = path.last_mut() {
            let at = *at;
            match ahead.pop() {
                None => {
                    visits[at] = Visit::Done;
                    path.pop();
                }
                Some(to) => match visits[to] {
                    Visit::Not => {
                        visits[to] = Visit::Open;
                        path.push((to, next(to)));
                    }
                    Visit::Open => found.push((at, to)),
                    Visit::Done => {}
                },
            }
        }
    }
    found
}
