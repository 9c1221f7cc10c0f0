//! What a loaded program keeps: all limits, and everything about its instructions that one of them
//! shows alone. What depends on the path to an instruction is the assembler's and the verifier's.

use super::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, PROGRAM_WORDS,
    WordError,
};
use super::program::{BUFFERS, BufferRole, StationProgram, is_name};
use super::timing::FRAME_WORDS;
use onbeat_model::name;
use std::fmt;

/// Octets of the name of a program's source.
pub const SOURCE_OCTETS: usize = 1_024;

/// Why a program cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// No node has the station's name.
    Station,
    /// The name of the source is too long, or has control characters.
    Source,
    /// The medium has a rate that no station has.
    Medium,
    /// More buffers than a station has.
    TooManyBuffers,
    /// The buffer's name is none, or that of an earlier one.
    BufferName(usize),
    /// The buffer is empty, or longer than a frame.
    BufferLength(usize),
    /// The message's identifier is not above that of the one before.
    MessageOrder(usize),
    /// The message's name is none, or that of an earlier one.
    MessageName(usize),
    /// The message is empty, or longer than a frame.
    MessageLength(usize),
    /// No instruction, or more than addresses.
    InstructionCount,
    /// Lines, but not one for each instruction.
    LineCount,
    /// The instruction has line 0, or one before that of the instruction above.
    Line(usize),
    /// An instruction is wrong.
    Instruction(usize, InstructionError),
}

/// What is wrong with an instruction of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionError {
    /// The word is none.
    Word(WordError),
    /// It continues at an address behind the end.
    Address,
    /// The program has no such buffer.
    Buffer,
    /// The program has no such message.
    Message,
    /// `receive` into a buffer that the application writes.
    IntoOutput,
    /// `receive` into a buffer of another length than the message.
    Length,
    /// A guard compares a word that its buffer does not have.
    Index,
    /// `sync slave` that never sees a round.
    Timeout,
}

impl fmt::Display for InstructionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word(error) => return error.fmt(f),
            Self::Address => "it continues behind the last instruction",
            Self::Buffer => "there is no such buffer",
            Self::Message => "there is no such message",
            Self::IntoOutput => "it receives into an output",
            Self::Length => "the message and the buffer have different lengths",
            Self::Index => "the buffer has no such word",
            Self::Timeout => "its timeout is 0",
        })
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Station => f.write_str("the station's name is no node's"),
            Self::Source => f.write_str("the source's name is too long or has control characters"),
            Self::Medium => f.write_str("no station has a medium of this rate"),
            Self::TooManyBuffers => write!(f, "there are more than {BUFFERS} buffers"),
            Self::BufferName(at) => write!(f, "buffer {at}: the name is none, or taken"),
            Self::BufferLength(at) => write!(f, "buffer {at}: it has not 1 to {FRAME_WORDS} words"),
            Self::MessageOrder(at) => write!(f, "message {at}: identifiers do not ascend"),
            Self::MessageName(at) => write!(f, "message {at}: the name is none, or taken"),
            Self::MessageLength(at) => {
                write!(f, "message {at}: it has not 1 to {FRAME_WORDS} words")
            }
            Self::InstructionCount => write!(f, "there are not 1 to {PROGRAM_WORDS} instructions"),
            Self::LineCount => f.write_str("there is not one line for each instruction"),
            Self::Line(at) => write!(f, "instruction {at}: its line is 0 or before the last one"),
            Self::Instruction(at, error) => write!(f, "instruction {at}: {error}"),
        }
    }
}

impl std::error::Error for ProgramError {}

impl StationProgram {
    /// Whether a station can load it.
    ///
    /// # Errors
    /// The first thing that it cannot.
    pub fn check(&self) -> Result<(), ProgramError> {
        let is_right = |is_right, error| if is_right { Ok(()) } else { Err(error) };
        is_right(name::is_name(&self.station), ProgramError::Station)?;
        let has_control = self.source.chars().any(char::is_control);
        is_right(self.source.len() <= SOURCE_OCTETS && !has_control, ProgramError::Source)?;
        is_right([1, 10, 100].contains(&self.medium.octet_cycles), ProgramError::Medium)?;
        is_right(self.buffers.len() <= BUFFERS, ProgramError::TooManyBuffers)?;
        let is_length = |words: u16| (1..=FRAME_WORDS).contains(&words);
        for (at, buffer) in self.buffers.iter().enumerate() {
            let is_taken = self.buffers[..at].iter().any(|other| other.name == buffer.name);
            let is_fine = is_name(&buffer.name) && !is_taken;
            is_right(is_fine, ProgramError::BufferName(at))?;
            is_right(is_length(buffer.words), ProgramError::BufferLength(at))?;
        }
        for (at, message) in self.messages.iter().enumerate() {
            let before = &self.messages[..at];
            let ascends = before.last().is_none_or(|last| last.id < message.id);
            is_right(ascends, ProgramError::MessageOrder(at))?;
            let is_taken = before.iter().any(|other| other.name == message.name);
            let is_fine = is_name(&message.name) && !is_taken;
            is_right(is_fine, ProgramError::MessageName(at))?;
            is_right(is_length(message.words), ProgramError::MessageLength(at))?;
        }
        let count = self.words.len();
        is_right((1..=PROGRAM_WORDS).contains(&count), ProgramError::InstructionCount)?;
        let has_lines = self.lines.is_empty() || self.lines.len() == count;
        is_right(has_lines, ProgramError::LineCount)?;
        let mut last = 1;
        for (at, line) in self.lines.iter().enumerate() {
            is_right(*line >= last, ProgramError::Line(at))?;
            last = *line;
        }
        for (at, word) in self.words.iter().enumerate() {
            let checked = Instruction::decode(*word)
                .map_err(InstructionError::Word)
                .and_then(|instruction| self.check_instruction(instruction));
            checked.map_err(|error| ProgramError::Instruction(at, error))?;
        }
        Ok(())
    }

    fn check_instruction(&self, instruction: Instruction) -> Result<(), InstructionError> {
        match instruction {
            Instruction::Nop | Instruction::Halt | Instruction::SyncMaster => Ok(()),
            Instruction::Create { buffer } => self.has_buffer(buffer),
            Instruction::Send { message } => self.has_message(message),
            Instruction::Receive { message, buffer } => self.check_receive(message, buffer),
            Instruction::Future { target, .. } => self.has_address(target),
            Instruction::SyncSlave { timeout: 0 } => Err(InstructionError::Timeout),
            Instruction::SyncSlave { .. } => Ok(()),
            Instruction::Branch { guard, target } => {
                self.has_address(target)?;
                self.check_guard(guard)
            }
        }
    }

    fn check_receive(&self, message: MessageId, buffer: BufferId) -> Result<(), InstructionError> {
        let message = self.message(message).ok_or(InstructionError::Message)?;
        let buffer = self.buffer(buffer).ok_or(InstructionError::Buffer)?;
        if buffer.role == BufferRole::Output {
            return Err(InstructionError::IntoOutput);
        }
        if buffer.words == message.words { Ok(()) } else { Err(InstructionError::Length) }
    }

    fn check_guard(&self, guard: Guard) -> Result<(), InstructionError> {
        match guard.condition {
            Condition::Fresh(message) => self.has_message(message),
            Condition::Immediate { word, .. } => self.has_word(word),
            Condition::Words { left, right, .. } => {
                self.has_word(left)?;
                self.has_word(right)
            }
            _ => Ok(()),
        }
    }

    fn has_address(&self, address: Address) -> Result<(), InstructionError> {
        self.word(address).map(|_| ()).ok_or(InstructionError::Address)
    }

    fn has_buffer(&self, id: BufferId) -> Result<(), InstructionError> {
        self.buffer(id).map(|_| ()).ok_or(InstructionError::Buffer)
    }

    fn has_message(&self, id: MessageId) -> Result<(), InstructionError> {
        self.message(id).map(|_| ()).ok_or(InstructionError::Message)
    }

    fn has_word(&self, word: BufferWord) -> Result<(), InstructionError> {
        let buffer = self.buffer(word.buffer).ok_or(InstructionError::Buffer)?;
        let is_there = u16::from(word.index) < buffer.words;
        if is_there { Ok(()) } else { Err(InstructionError::Index) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::instruction::Relation;
    use super::super::program::{Buffer, MessageFormat};
    use super::super::timing::Medium;
    use super::*;

    /// A program that is right.
    fn right() -> StationProgram {
        let buffer = |name: &str, words, role| Buffer { name: name.to_owned(), words, role };
        StationProgram {
            station: "a".to_owned(),
            medium: Medium::GIGABIT,
            buffers: vec![buffer("o", 1, BufferRole::Output), buffer("i", 2, BufferRole::Input)],
            messages: [3, 5]
                .map(|id| MessageFormat { id: MessageId(id), name: format!("m{id}"), words: 2 })
                .to_vec(),
            words: vec![Instruction::Nop.encode(); 3],
            source: String::new(),
            lines: vec![1, 1, 4],
        }
    }

    fn found(change: impl FnOnce(&mut StationProgram)) -> Option<ProgramError> {
        let mut program = right();
        change(&mut program);
        program.check().err()
    }

    #[test]
    fn each_limit_of_a_program_is_kept() {
        use ProgramError as E;
        assert_eq!(right().check(), Ok(()));
        assert_eq!(found(|p| p.lines.clear()), None);
        assert_eq!(found(|p| p.station.clear()), Some(E::Station));
        assert_eq!(found(|p| p.station = "a b".to_owned()), Some(E::Station));
        assert_eq!(found(|p| p.source = "\u{7}".to_owned()), Some(E::Source));
        assert_eq!(found(|p| p.source = "x".repeat(SOURCE_OCTETS + 1)), Some(E::Source));
        assert_eq!(found(|p| p.source = "x".repeat(SOURCE_OCTETS)), None);
        assert_eq!(found(|p| p.medium.octet_cycles = 2), Some(E::Medium));
        assert_eq!(found(|p| p.buffers[1].name = "o".to_owned()), Some(E::BufferName(1)));
        assert_eq!(found(|p| p.buffers[1].name = "send".to_owned()), Some(E::BufferName(1)));
        assert_eq!(found(|p| p.buffers[0].words = 0), Some(E::BufferLength(0)));
        assert_eq!(found(|p| p.buffers[0].words = FRAME_WORDS + 1), Some(E::BufferLength(0)));
        assert_eq!(found(|p| p.messages[1].id = MessageId(3)), Some(E::MessageOrder(1)));
        assert_eq!(found(|p| p.messages[1].name = "m3".to_owned()), Some(E::MessageName(1)));
        assert_eq!(found(|p| p.messages[1].name = "0".to_owned()), Some(E::MessageName(1)));
        assert_eq!(found(|p| p.messages[0].words = 0), Some(E::MessageLength(0)));
        assert_eq!(found(|p| p.words.clear()), Some(E::InstructionCount));
        assert_eq!(found(|p| p.words.resize(PROGRAM_WORDS + 1, 0)), Some(E::InstructionCount));
        assert_eq!(found(|p| p.lines = vec![1, 2]), Some(E::LineCount));
        assert_eq!(found(|p| p.lines[0] = 0), Some(E::Line(0)));
        assert_eq!(found(|p| p.lines[2] = 0), Some(E::Line(2)));
        let many = |p: &mut StationProgram| {
            let of = |at| Buffer { name: format!("b{at}"), words: 1, role: BufferRole::Input };
            p.buffers = (0..=BUFFERS).map(of).collect();
        };
        assert_eq!(found(many), Some(E::TooManyBuffers));
    }

    #[test]
    fn each_wrong_instruction_is_found_where_it_is() {
        use InstructionError as E;
        let (three, none) = (MessageId(3), MessageId(4));
        let (output, input, missing) = (BufferId(0), BufferId(1), BufferId(2));
        let target = Address::new(2).expect("the last");
        let behind = Address::new(3).expect("it is small");
        let compare = |buffer, index, other| {
            let left = BufferWord { buffer, index };
            let right = BufferWord { buffer: input, index: other };
            let condition = Condition::Words { left, relation: Relation::Less, right };
            Instruction::Branch { guard: Guard { negated: false, condition }, target }
        };
        let constant = |buffer, index| {
            let word = BufferWord { buffer, index };
            let condition = Condition::Immediate { word, relation: Relation::Equal, value: 0 };
            Instruction::Branch { guard: Guard { negated: true, condition }, target }
        };
        let fresh = |message| {
            let guard = Guard { negated: false, condition: Condition::Fresh(message) };
            Instruction::Branch { guard, target }
        };
        for (instruction, wrong) in [
            (Instruction::Create { buffer: input }, None),
            (Instruction::Create { buffer: missing }, Some(E::Buffer)),
            (Instruction::Send { message: three }, None),
            (Instruction::Send { message: none }, Some(E::Message)),
            (Instruction::Receive { message: three, buffer: input }, None),
            (Instruction::Receive { message: none, buffer: input }, Some(E::Message)),
            (Instruction::Receive { message: three, buffer: missing }, Some(E::Buffer)),
            (Instruction::Receive { message: three, buffer: output }, Some(E::IntoOutput)),
            (Instruction::Future { target, delay: 0 }, None),
            (Instruction::Future { target: behind, delay: 1 }, Some(E::Address)),
            (Instruction::SyncSlave { timeout: 1 }, None),
            (Instruction::SyncSlave { timeout: 0 }, Some(E::Timeout)),
            (Instruction::Branch { guard: Guard::ALWAYS, target: behind }, Some(E::Address)),
            (fresh(three), None),
            (fresh(none), Some(E::Message)),
            (constant(output, 0), None),
            (constant(output, 1), Some(E::Index)),
            (constant(missing, 0), Some(E::Buffer)),
            (compare(output, 0, 1), None),
            (compare(output, 0, 2), Some(E::Index)),
            (compare(missing, 0, 0), Some(E::Buffer)),
        ] {
            let expected = wrong.map(|error| ProgramError::Instruction(1, error));
            let word = instruction.encode();
            assert_eq!(found(|p| p.words[1] = word), expected, "{instruction:?}");
        }
        let receive = Instruction::Receive { message: three, buffer: input }.encode();
        let longer = |p: &mut StationProgram| {
            p.words[0] = receive;
            p.buffers[1].words = 3;
        };
        assert_eq!(found(longer), Some(ProgramError::Instruction(0, E::Length)));
        let none = InstructionError::Word(WordError::Reserved);
        assert_eq!(found(|p| p.words[2] = 1), Some(ProgramError::Instruction(2, none)));
    }
}
