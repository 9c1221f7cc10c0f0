//! The eight instructions, and their words of 64 bits:
//!
//! ```text
//! 63     58 57          46 45        38 37         32 31                               0
//! operation    address     buffer or id  mode or guard             immediate
//! ```
//!
//! Fields that an instruction does not use are 0, and a word with others is no instruction. So each
//! instruction has one word, and each word at most one meaning.

use std::fmt;

/// Words of instructions that a station holds: addresses have 12 bits.
pub const PROGRAM_WORDS: usize = 1 << 12;
/// Counters that guards have ([`Condition::Count`]).
pub const COUNTERS: u8 = 16;
/// Flags that the application sets ([`Condition::Flag`]).
pub const FLAGS: u8 = 16;

/// Where in a program an instruction is, below [`PROGRAM_WORDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(u16);

impl Address {
    /// The address, if a program can have it.
    pub fn new(index: usize) -> Option<Self> {
        (index < PROGRAM_WORDS).then_some(Self(index as u16))
    }

    /// As an index of a program's instructions.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A data buffer of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u8);

/// What a frame says it carries: one identifier for all stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8);

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// Does nothing.
    Nop,
    /// Copies a data buffer into the send buffer.
    Create {
        /// From where.
        buffer: BufferId,
    },
    /// Sends what is in the send buffer.
    Send {
        /// As what.
        message: MessageId,
    },
    /// Copies the last complete frame of a message into a data buffer, if none did before.
    Receive {
        /// Of what.
        message: MessageId,
        /// Where to.
        buffer: BufferId,
    },
    /// Starts the countdown.
    Future {
        /// Where [`Instruction::Halt`] continues.
        target: Address,
        /// In cycles, from the issue of this instruction.
        delay: u32,
    },
    /// Waits for the end of the countdown.
    Halt,
    /// Sends the beginning of a round.
    SyncMaster,
    /// Waits for the beginning of a round.
    SyncSlave {
        /// In cycles, from the issue of this instruction: after these it continues without.
        timeout: u32,
    },
    /// Continues elsewhere, if a guard is true.
    Branch {
        /// The guard.
        guard: Guard,
        /// Where.
        target: Address,
    },
}

/// What [`Instruction::Branch`] decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Whether it is true where its condition is not.
    pub negated: bool,
    /// The condition.
    pub condition: Condition,
}

/// What a guard looks at, at the issue of its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// True.
    Always,
    /// True at each `every`-th evaluation of a counter, from its last time: the execution history.
    Count {
        /// Below [`COUNTERS`]. All guards of one counter count together.
        counter: u8,
        /// Not 0.
        every: u32,
    },
    /// Whether a complete frame has come that no [`Instruction::Receive`] has copied.
    Fresh(MessageId),
    /// Whether the last [`Instruction::Receive`] found a frame (RX_FRESH).
    Received,
    /// Whether the last [`Instruction::SyncSlave`] continued without (SYNC_TIMEOUT).
    SyncTimeout,
    /// Whether a countdown ended before its [`Instruction::Halt`], or was replaced, since this
    /// condition was last evaluated (OVERRUN).
    Overrun,
    /// A flag of the application, below [`FLAGS`].
    Flag(u8),
    /// Whether a frame of the station is on the wire, with the gap behind it.
    Transmitting,
    /// Whether the link is up.
    LinkUp,
    /// A word of a data buffer, compared with a constant.
    Immediate {
        /// The word.
        word: BufferWord,
        /// How.
        relation: Relation,
        /// With what: 24 bits, extended by their sign to the word's 32, for each relation.
        value: i32,
    },
    /// Words of two data buffers, or of one, compared.
    Words {
        /// The left one.
        left: BufferWord,
        /// How.
        relation: Relation,
        /// The right one.
        right: BufferWord,
    },
}

/// A word of a data buffer. Guards reach its first 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferWord {
    /// The buffer.
    pub buffer: BufferId,
    /// Which word, from 0.
    pub index: u8,
}

/// How words are compared. What is missing is one of these, negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Equal.
    Equal,
    /// Less, as signed numbers.
    Less,
    /// Less or equal, as signed numbers.
    AtMost,
    /// Less, as unsigned numbers.
    Below,
    /// Less or equal, as unsigned numbers.
    NotAbove,
}

/// Constants of [`Condition::Immediate`].
pub const IMMEDIATE: std::ops::RangeInclusive<i32> = -(1 << 23)..=(1 << 23) - 1;

impl Relation {
    const ALL: [Self; 5] = [Self::Equal, Self::Less, Self::AtMost, Self::Below, Self::NotAbove];

    /// Whether it is so.
    pub fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Less => (left as i32) < right as i32,
            Self::AtMost => left as i32 <= right as i32,
            Self::Below => left < right,
            Self::NotAbove => left <= right,
        }
    }
}

/// Why a word is no instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordError {
    /// No such operation.
    Operation(u8),
    /// No such guard.
    Guard(u8),
    /// A counter, flag or count that there is not.
    Operand,
    /// A field that the instruction does not use is not 0.
    Reserved,
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(code) => write!(f, "no instruction has operation {code}"),
            Self::Guard(code) => write!(f, "no guard has code {code}"),
            Self::Operand => f.write_str("a counter, flag or count is out of range"),
            Self::Reserved => f.write_str("a field that the instruction does not use is not 0"),
        }
    }
}

impl std::error::Error for WordError {}

/// The fields of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fields {
    operation: u8,
    address: u16,
    id: u8,
    mode: u8,
    immediate: u32,
}

const NOP: u8 = 0;
const CREATE: u8 = 1;
const SEND: u8 = 2;
const RECEIVE: u8 = 3;
const FUTURE: u8 = 4;
const HALT: u8 = 5;
const SYNC: u8 = 6;
const BRANCH: u8 = 7;

const SLAVE: u8 = 0;
const MASTER: u8 = 1;

/// Of the guard's six bits.
const NEGATED: u8 = 1 << 5;
const ALWAYS: u8 = 0;
const COUNT: u8 = 1;
const FRESH: u8 = 2;
const RECEIVED: u8 = 3;
const SYNC_TIMEOUT: u8 = 4;
const OVERRUN: u8 = 5;
const FLAG: u8 = 6;
const TRANSMITTING: u8 = 7;
const LINK_UP: u8 = 8;
/// With the relation added.
const COMPARE_IMMEDIATE: u8 = 16;
const COMPARE_WORDS: u8 = 24;

impl Fields {
    fn of(word: u64) -> Self {
        Self {
            operation: (word >> 58) as u8,
            address: (word >> 46 & 0xfff) as u16,
            id: (word >> 38) as u8,
            mode: (word >> 32 & 0x3f) as u8,
            immediate: word as u32,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.operation) << 58
            | u64::from(self.address) << 46
            | u64::from(self.id) << 38
            | u64::from(self.mode) << 32
            | u64::from(self.immediate)
    }
}

impl Instruction {
    /// Its word.
    pub fn encode(self) -> u64 {
        let none = Fields::default();
        match self {
            Self::Nop => Fields { operation: NOP, ..none },
            Self::Create { buffer } => Fields { operation: CREATE, id: buffer.0, ..none },
            Self::Send { message } => Fields { operation: SEND, id: message.0, ..none },
            Self::Receive { message, buffer } => {
                let immediate = u32::from(buffer.0);
                Fields { operation: RECEIVE, id: message.0, immediate, ..none }
            }
            Self::Future { target, delay } => {
                Fields { operation: FUTURE, address: target.0, immediate: delay, ..none }
            }
            Self::Halt => Fields { operation: HALT, ..none },
            Self::SyncMaster => Fields { operation: SYNC, mode: MASTER, ..none },
            Self::SyncSlave { timeout } => {
                Fields { operation: SYNC, mode: SLAVE, immediate: timeout, ..none }
            }
            Self::Branch { guard, target } => {
                Fields { operation: BRANCH, address: target.0, ..guard.fields() }
            }
        }
        .word()
    }

    /// The instruction of a word.
    pub fn decode(word: u64) -> Result<Self, WordError> {
        let Fields { operation, address, id, mode, immediate } = Fields::of(word);
        let instruction = match operation {
            NOP => Self::Nop,
            CREATE => Self::Create { buffer: BufferId(id) },
            SEND => Self::Send { message: MessageId(id) },
            RECEIVE => Self::Receive { message: MessageId(id), buffer: BufferId(immediate as u8) },
            FUTURE => Self::Future { target: Address(address), delay: immediate },
            HALT => Self::Halt,
            SYNC if mode == MASTER => Self::SyncMaster,
            SYNC => Self::SyncSlave { timeout: immediate },
            BRANCH => Self::Branch {
                guard: Guard {
                    negated: mode & NEGATED != 0,
                    condition: Condition::decode(mode & !NEGATED, id, immediate)?,
                },
                target: Address(address),
            },
            _ => return Err(WordError::Operation(operation)),
        };
        // What it does not use would come back as 0.
        if instruction.encode() == word { Ok(instruction) } else { Err(WordError::Reserved) }
    }
}

impl Guard {
    /// One that is always true.
    pub const ALWAYS: Self = Self { negated: false, condition: Condition::Always };

    fn fields(self) -> Fields {
        let of = |mode, id, immediate| Fields { mode, id, immediate, ..Fields::default() };
        let fields = match self.condition {
            Condition::Always => of(ALWAYS, 0, 0),
            Condition::Count { counter, every } => of(COUNT, counter, every),
            Condition::Fresh(message) => of(FRESH, message.0, 0),
            Condition::Received => of(RECEIVED, 0, 0),
            Condition::SyncTimeout => of(SYNC_TIMEOUT, 0, 0),
            Condition::Overrun => of(OVERRUN, 0, 0),
            Condition::Flag(flag) => of(FLAG, flag, 0),
            Condition::Transmitting => of(TRANSMITTING, 0, 0),
            Condition::LinkUp => of(LINK_UP, 0, 0),
            Condition::Immediate { word, relation, value } => {
                let immediate = u32::from(word.index) << 24 | value as u32 & 0xff_ffff;
                of(COMPARE_IMMEDIATE + relation as u8, word.buffer.0, immediate)
            }
            Condition::Words { left, relation, right } => {
                let right = u32::from(right.buffer.0) << 8 | u32::from(right.index);
                let immediate = u32::from(left.index) << 24 | right;
                of(COMPARE_WORDS + relation as u8, left.buffer.0, immediate)
            }
        };
        Fields { mode: fields.mode | if self.negated { NEGATED } else { 0 }, ..fields }
    }
}

impl Condition {
    fn decode(code: u8, id: u8, immediate: u32) -> Result<Self, WordError> {
        let word = BufferWord { buffer: BufferId(id), index: (immediate >> 24) as u8 };
        let relation = |base: u8| {
            let index = usize::from(code - base);
            Relation::ALL.get(index).copied().ok_or(WordError::Guard(code))
        };
        Ok(match code {
            ALWAYS => Self::Always,
            COUNT if id < COUNTERS && immediate > 0 => {
                Self::Count { counter: id, every: immediate }
            }
            FLAG if id < FLAGS => Self::Flag(id),
            COUNT | FLAG => return Err(WordError::Operand),
            FRESH => Self::Fresh(MessageId(id)),
            RECEIVED => Self::Received,
            SYNC_TIMEOUT => Self::SyncTimeout,
            OVERRUN => Self::Overrun,
            TRANSMITTING => Self::Transmitting,
            LINK_UP => Self::LinkUp,
            COMPARE_WORDS.. => {
                let buffer = BufferId((immediate >> 8) as u8);
                let right = BufferWord { buffer, index: immediate as u8 };
                Self::Words { left: word, relation: relation(COMPARE_WORDS)?, right }
            }
            COMPARE_IMMEDIATE.. => {
                let value = (immediate << 8) as i32 >> 8;
                Self::Immediate { word, relation: relation(COMPARE_IMMEDIATE)?, value }
            }
            _ => return Err(WordError::Guard(code)),
        })
    }
}
