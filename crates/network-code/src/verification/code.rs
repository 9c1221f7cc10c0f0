//! A program's instructions with what can be said of them without executing any: whether each is
//! one, what each leads to, and whether all loops wait.

use onbeat_runtime::network_code::instruction::{
    BufferId, BufferWord, Condition, Guard, Instruction, MessageId, PROGRAM_WORDS,
};
use onbeat_runtime::network_code::program::{BUFFERS, BufferRole, StationProgram};
use onbeat_runtime::network_code::timing::FRAME_WORDS;
use std::collections::BTreeSet;

/// The slowest medium: 10 kbit/s.
const OCTET_CYCLES_MAX: u32 = 100_000;

/// A program that can be followed.
pub(super) struct StationCode {
    pub(super) instructions: Vec<Instruction>,
    /// Messages with a `receive` or a `fresh`, in order.
    pub(super) messages: Vec<MessageId>,
    /// Input buffers that a guard or a `create` looks at, in order.
    pub(super) buffers: Vec<u8>,
    /// Counters that a guard counts with, in order.
    pub(super) counters: Vec<u8>,
    /// Whether a guard looks at RX_FRESH.
    pub(super) has_received: bool,
    /// Words that more than one branch looks at.
    repeated: BTreeSet<(u8, u8)>,
    /// Words that a branch looks at.
    pub(super) looked_at: BTreeSet<(u8, u8)>,
}

/// What is wrong with a program: where, and in words.
pub(super) type CodeError = (usize, String);

/// The words that a guard compares.
pub(super) fn words(guard: Guard) -> Vec<BufferWord> {
    match guard.condition {
        Condition::Immediate { word, .. } => vec![word],
        Condition::Words { left, right, .. } => vec![left, right],
        _ => Vec::new(),
    }
}

impl StationCode {
    /// Reads a program, or says all that keeps it from being followed.
    pub(super) fn new(program: &StationProgram) -> Result<Self, Vec<CodeError>> {
        let mut errors = Vec::new();
        let mut instructions = Vec::new();
        for (at, word) in program.words.iter().enumerate() {
            match Instruction::decode(*word) {
                Ok(instruction) => {
                    let length = program.words.len();
                    errors.extend(fault(program, length, instruction).map(|text| (at, text)));
                    instructions.push(instruction);
                }
                Err(error) => errors.push((at, error.to_string())),
            }
        }
        if !keeps_ranges(program) {
            errors.push((0, "a length or an order of the program is out of its limits".into()));
        }
        if errors.is_empty() {
            errors.extend(structure(&instructions));
        }
        if errors.is_empty() { Ok(Self::of(program, instructions)) } else { Err(errors) }
    }

    fn of(program: &StationProgram, instructions: Vec<Instruction>) -> Self {
        let mut messages = BTreeSet::new();
        let mut buffers = BTreeSet::new();
        let mut counters = BTreeSet::new();
        let mut looked_at = BTreeSet::new();
        let mut repeated = BTreeSet::new();
        let mut has_received = false;
        for instruction in &instructions {
            match *instruction {
                Instruction::Receive { message, .. } => {
                    messages.insert(message);
                }
                Instruction::Create { buffer } => {
                    buffers.insert(buffer.0);
                }
                Instruction::Branch { guard, .. } => {
                    match guard.condition {
                        Condition::Fresh(message) => {
                            messages.insert(message);
                        }
                        Condition::Count { counter, .. } => {
                            counters.insert(counter);
                        }
                        Condition::Received => has_received = true,
                        _ => {}
                    }
                    for word in words(guard) {
                        buffers.insert(word.buffer.0);
                        if !looked_at.insert((word.buffer.0, word.index)) {
                            repeated.insert((word.buffer.0, word.index));
                        }
                    }
                }
                _ => {}
            }
        }
        let is_input = |id: &u8| {
            program.buffer(BufferId(*id)).is_some_and(|buffer| buffer.role == BufferRole::Input)
        };
        Self {
            instructions,
            messages: messages.into_iter().collect(),
            buffers: buffers.into_iter().filter(is_input).collect(),
            counters: counters.into_iter().collect(),
            has_received,
            repeated,
            looked_at,
        }
    }

    /// Whether more than one branch looks at a word.
    pub(super) fn is_repeated(&self, word: BufferWord) -> bool {
        self.repeated.contains(&(word.buffer.0, word.index))
    }

    /// The messages whose frames may get into a buffer.
    pub(super) fn sources(&self, buffer: u8) -> impl Iterator<Item = MessageId> {
        self.instructions.iter().filter_map(move |instruction| match instruction {
            Instruction::Receive { message, buffer: to } if to.0 == buffer => Some(*message),
            _ => None,
        })
    }
}

/// Whether the fields besides the words are in their limits, so that times can be computed.
fn keeps_ranges(program: &StationProgram) -> bool {
    let is_length = |words: u16| (1..=FRAME_WORDS).contains(&words);
    (1..=OCTET_CYCLES_MAX).contains(&program.medium.octet_cycles)
        && program.buffers.len() <= BUFFERS
        && program.buffers.iter().all(|buffer| is_length(buffer.words))
        && program.messages.iter().all(|message| is_length(message.words))
        && program.messages.is_sorted_by(|one, next| one.id < next.id)
        && program.words.len() <= PROGRAM_WORDS
}

/// What an instruction names that is not there.
fn fault(program: &StationProgram, length: usize, instruction: Instruction) -> Option<String> {
    let buffer = |id: BufferId| {
        program.buffer(id).ok_or_else(|| format!("the station has no buffer {}", id.0))
    };
    let message = |id: MessageId| {
        program.message(id).ok_or_else(|| format!("the station knows no message {}", id.0))
    };
    let check = || -> Result<(), String> {
        match instruction {
            Instruction::Create { buffer: id } => {
                buffer(id)?;
            }
            Instruction::Send { message: id } => {
                message(id)?;
            }
            Instruction::Receive { message: id, buffer: to } => {
                let (format, to) = (message(id)?, buffer(to)?);
                if to.role == BufferRole::Output {
                    return Err(format!("the application writes `{}`, not `receive`", to.name));
                }
                if to.words != format.words {
                    let (name, into) = (&format.name, &to.name);
                    return Err(format!("`{name}` and `{into}` have different lengths"));
                }
            }
            Instruction::Branch { guard, target } => {
                if target.index() >= length {
                    return Err("its label is behind the program's end".into());
                }
                for word in words(guard) {
                    let of = buffer(word.buffer)?;
                    if u16::from(word.index) >= of.words {
                        return Err(format!("`{}` has no word {}", of.name, word.index));
                    }
                }
                if let Condition::Fresh(id) = guard.condition {
                    message(id)?;
                }
            }
            Instruction::Future { target, .. } if target.index() >= length => {
                return Err("its label is behind the program's end".into());
            }
            _ => {}
        }
        Ok(())
    };
    check().err()
}

/// Where control may continue, without the waits: `halt` and `sync` end a walk.
fn successors(instructions: &[Instruction], at: usize) -> Vec<usize> {
    match instructions[at] {
        Instruction::Halt | Instruction::SyncMaster | Instruction::SyncSlave { .. } => Vec::new(),
        Instruction::Branch { guard, target } => match (guard.condition, guard.negated) {
            (Condition::Always, false) => vec![target.index()],
            (Condition::Always, true) => vec![at + 1],
            _ => vec![at + 1, target.index()],
        },
        _ => vec![at + 1],
    }
}

/// Paths off the end, and loops that do not wait.
fn structure(instructions: &[Instruction]) -> Vec<CodeError> {
    let length = instructions.len();
    if length == 0 {
        return vec![(0, "the program is empty".into())];
    }
    // What can be reached at all, with all countdowns taken as possible.
    let mut reached = BTreeSet::from([0]);
    let mut open = vec![0];
    let mut errors = Vec::new();
    while let Some(at) = open.pop() {
        let mut next = successors(instructions, at);
        match instructions[at] {
            Instruction::Future { target, .. } => next.push(target.index()),
            Instruction::SyncMaster | Instruction::SyncSlave { .. } => next.push(at + 1),
            _ => {}
        }
        for next in next {
            if next >= length {
                errors.push((at, "control leaves the program at its end".into()));
            } else if reached.insert(next) {
                open.push(next);
            }
        }
    }
    if errors.is_empty() {
        errors.extend(endless(instructions, &reached));
    }
    errors
}

/// The first branch of a cycle without a wait: found by removing what leads nowhere.
fn endless(instructions: &[Instruction], reached: &BTreeSet<usize>) -> Option<CodeError> {
    let mut left: BTreeSet<usize> = reached.clone();
    loop {
        let ends = |at: &usize| !successors(instructions, *at).iter().any(|it| left.contains(it));
        let done: Vec<usize> = left.iter().copied().filter(ends).collect();
        if done.is_empty() {
            break;
        }
        for at in done {
            left.remove(&at);
        }
    }
    let at = *left.first()?;
    Some((at, "a loop has neither `halt` nor `sync`: it does not wait".into()))
}
