//! Random programs: of any instructions, and of rounds as stations have them.

use onbeat_runtime::network_code::instruction::{
    Address, BufferId, BufferWord, Condition, Guard, Instruction, MessageId, Relation,
};
use onbeat_runtime::network_code::program::{Buffer, BufferRole, MessageFormat, StationProgram};
use onbeat_runtime::network_code::timing::Medium;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Random numbers from a seed.
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

/// What instructions can name.
struct Names {
    buffers: Vec<Buffer>,
    messages: Vec<MessageFormat>,
    addresses: u64,
}

/// Words of buffers and messages: short ones, so that lengths often agree.
fn length(dice: &mut Dice) -> u16 {
    if dice.percent(4) { dice.of(&[11, 60, 374]) } else { 1 + dice.below(3) as u16 }
}

impl Names {
    fn new(dice: &mut Dice, addresses: u64) -> Self {
        let mut id = 0;
        let messages: Vec<_> = (0..2 + dice.below(3))
            .map(|_| {
                id += 1 + dice.below(30) as u8;
                let words = length(dice);
                MessageFormat { id: MessageId(id), name: format!("m{id}"), words }
            })
            .collect();
        let buffers = (0..4 + dice.below(4)).map(|index| {
            let alike = messages[dice.below(messages.len() as u64) as usize].words;
            let words = if dice.percent(85) { alike } else { length(dice) };
            let role = if index % 2 == 0 { BufferRole::Output } else { BufferRole::Input };
            Buffer { name: format!("b{index}"), words, role }
        });
        Self { buffers: buffers.collect(), messages, addresses }
    }

    fn address(&self, dice: &mut Dice) -> Address {
        // Now and then behind the end.
        let end = if dice.percent(1) { self.addresses + 4 } else { self.addresses };
        Address::new(dice.below(end) as usize).expect("an address of a short program")
    }

    fn message(&self, dice: &mut Dice) -> MessageId {
        if dice.percent(1) {
            return MessageId(dice.word() as u8);
        }
        self.messages[dice.below(self.messages.len() as u64) as usize].id
    }

    fn buffer(&self, dice: &mut Dice) -> BufferId {
        let end = self.buffers.len() as u64 + if dice.percent(1) { 2 } else { 0 };
        BufferId(dice.below(end) as u8)
    }

    /// One to which a message can be received, or from which it can be sent, if there is one.
    fn fitting(&self, message: MessageId, role: BufferRole, dice: &mut Dice) -> BufferId {
        let format = self.messages.iter().find(|format| format.id == message);
        let fits = |buffer: &Buffer| {
            buffer.role == role && format.is_some_and(|format| format.words == buffer.words)
        };
        let found = (0u8..).zip(&self.buffers).filter(|(_, buffer)| fits(buffer));
        let found: Vec<_> = found.map(|(index, _)| BufferId(index)).collect();
        if found.is_empty() || dice.percent(2) { self.buffer(dice) } else { dice.of(&found) }
    }

    fn word(&self, dice: &mut Dice) -> BufferWord {
        let buffer = self.buffer(dice);
        let words = self.buffers.get(usize::from(buffer.0)).map_or(1, |buffer| buffer.words);
        let end = u64::from(words).min(250) + u64::from(dice.percent(5));
        BufferWord { buffer, index: dice.below(end) as u8 }
    }

    fn guard(&self, dice: &mut Dice) -> Guard {
        let relations = [
            Relation::Equal,
            Relation::Less,
            Relation::AtMost,
            Relation::Below,
            Relation::NotAbove,
        ];
        let condition = match dice.below(15) {
            0 => Condition::Always,
            1 | 2 => {
                let (counter, every) = (dice.below(3) as u8, 1 + dice.below(4) as u32);
                Condition::Count { counter, every }
            }
            3 => Condition::Fresh(self.message(dice)),
            4 => Condition::Received,
            5 => Condition::SyncTimeout,
            6 => Condition::Overrun,
            7 => Condition::Flag(dice.below(16) as u8),
            8 | 9 => Condition::Transmitting,
            10 => Condition::LinkUp,
            11 | 12 => {
                let (word, relation) = (self.word(dice), dice.of(&relations));
                Condition::Immediate { word, relation, value: dice.of(&[-9, -1, 0, 1, 7]) }
            }
            _ => {
                let (left, right) = (self.word(dice), self.word(dice));
                Condition::Words { left, relation: dice.of(&relations), right }
            }
        };
        Guard { negated: dice.percent(40), condition }
    }

    fn instruction(&self, dice: &mut Dice) -> Instruction {
        let message = self.message(dice);
        match dice.below(20) {
            0 => Instruction::Nop,
            1..4 => Instruction::Create { buffer: self.fitting(message, BufferRole::Output, dice) },
            4..6 => Instruction::Send { message },
            6..9 => {
                let buffer = self.fitting(message, BufferRole::Input, dice);
                Instruction::Receive { message, buffer }
            }
            9..11 => Instruction::Future { target: self.address(dice), delay: delay(dice) },
            11 => Instruction::Halt,
            12 => Instruction::SyncMaster,
            13..15 => Instruction::SyncSlave { timeout: delay(dice) },
            _ => {
                let target = self.address(dice);
                Instruction::Branch { guard: self.guard(dice), target }
            }
        }
    }
}

fn delay(dice: &mut Dice) -> u32 {
    let end = dice.of(&[2, 6, 40, 40, 300, 300, 2_000]);
    dice.below(end) as u32
}

/// Instructions in any order, but `create` before `send` and `future` before `halt` mostly.
fn any_instructions(names: &Names, dice: &mut Dice) -> Vec<Instruction> {
    let mut instructions = Vec::new();
    while (instructions.len() as u64) < names.addresses {
        let next = names.instruction(dice);
        match next {
            Instruction::Send { message } if dice.percent(95) => {
                let buffer = names.fitting(message, BufferRole::Output, dice);
                instructions.push(Instruction::Create { buffer });
            }
            Instruction::Halt if dice.percent(95) => {
                let (target, delay) = (names.address(dice), delay(dice));
                instructions.push(Instruction::Future { target, delay });
            }
            _ => {}
        }
        instructions.push(next);
    }
    instructions
}

/// Rounds: a beginning, slots that end by `halt`, and in them what a station does.
fn rounds(names: &Names, dice: &mut Dice) -> Vec<Instruction> {
    let mut instructions = Vec::new();
    if dice.percent(50) {
        instructions.push(Instruction::SyncMaster);
    } else {
        instructions.push(Instruction::SyncSlave { timeout: 50 + 20 * delay(dice) });
        if dice.percent(50) {
            let target = Address::new(0).expect("the first address");
            let guard = Guard { negated: false, condition: Condition::SyncTimeout };
            instructions.push(Instruction::Branch { guard, target });
        }
    }
    let slots = 1 + dice.below(4);
    for slot in 0..slots {
        let future = instructions.len();
        instructions.push(Instruction::Nop);
        for _ in 0..dice.below(6) {
            slot_content(&mut instructions, names, dice);
        }
        instructions.push(Instruction::Halt);
        let target = if slot + 1 == slots { 0 } else { instructions.len() };
        let target = Address::new(target).expect("an address of a short program");
        let delay = if dice.percent(8) { delay(dice) } else { 150 + 2 * delay(dice) };
        instructions[future] = Instruction::Future { target, delay };
    }
    instructions
}

fn slot_content(instructions: &mut Vec<Instruction>, names: &Names, dice: &mut Dice) {
    let message = names.message(dice);
    match dice.below(6) {
        0 | 1 => {
            let buffer = names.fitting(message, BufferRole::Output, dice);
            instructions.push(Instruction::Create { buffer });
            instructions.push(Instruction::Send { message });
        }
        2 | 3 => {
            let buffer = names.fitting(message, BufferRole::Input, dice);
            instructions.push(Instruction::Receive { message, buffer });
        }
        4 => instructions.push(Instruction::Nop),
        // Over the next instruction, or to it.
        _ => {
            let target = instructions.len() + 1 + dice.below(2) as usize;
            let target = Address::new(target).expect("an address of a short program");
            instructions.push(Instruction::Branch { guard: names.guard(dice), target });
            instructions.push(Instruction::Nop);
        }
    }
}

/// A word that is mostly no instruction, each for another reason.
fn strange_word(word: u64, dice: &mut Dice) -> u64 {
    let branch = 7 << 58;
    match dice.below(5) {
        0 => word ^ 1 << dice.below(64),
        1 => dice.below(64) << 58,
        2 => branch | dice.below(64) << 32,
        // A counter or a flag, which are 16 each.
        3 => branch | dice.below(32) << 38 | dice.of(&[1, 6]) << 32 | dice.below(2),
        _ => dice.word(),
    }
}

/// A random program.
pub(crate) fn program(dice: &mut Dice) -> StationProgram {
    let addresses = 4 + dice.below(30);
    let names = Names::new(dice, addresses);
    let instructions =
        if dice.percent(50) { any_instructions(&names, dice) } else { rounds(&names, dice) };
    let mut words: Vec<u64> = instructions.into_iter().map(Instruction::encode).collect();
    if dice.percent(8) {
        let at = dice.below(words.len() as u64) as usize;
        words[at] = strange_word(words[at], dice);
    }
    let octet_cycles = if dice.percent(90) { 1 } else { dice.of(&[3, 10, 100]) };
    let lines = (1..).take(words.len()).collect();
    StationProgram {
        station: "station".to_owned(),
        medium: Medium { octet_cycles, tagged: dice.percent(50) },
        buffers: names.buffers,
        messages: names.messages,
        words,
        source: String::new(),
        lines,
    }
}
