//! What a station did, instruction by instruction: the executor and the reference interpreter say
//! the same.

use super::instruction::{Address, MessageId, WordError};
use super::timing::Cycles;

/// One instruction, carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Where it is in the program. Behind the end of the longest program it is the last address.
    pub address: Address,
    /// When it was issued.
    pub issued: Cycles,
    /// From when on the next one is issued, if it does not wait for the transmitter; of a trap,
    /// when it was found.
    pub next: Cycles,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done: `nop`, `create`, `future` without another countdown.
    Done,
    /// `future` replaced a countdown.
    Replaced,
    /// `send` or `sync master`: the first octet of the preamble leaves then.
    Sends(Cycles),
    /// `receive`: whether there was a frame.
    Received(bool),
    /// `halt`: whether the countdown had ended by then.
    Halted {
        /// Whether it had.
        overrun: bool,
    },
    /// `sync slave`: the round that has begun, or none in time.
    Synchronised(Option<u32>),
    /// `branch`: whether its guard was true.
    Branched(bool),
    /// The station has stopped.
    Trapped(Trap),
}

/// Why a station stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// The word is no instruction.
    Word(WordError),
    /// The program has no instruction there.
    End,
    /// `halt` without a countdown.
    NoFuture,
    /// A buffer that the station does not have, or a `receive` into one of the application's.
    Buffer,
    /// A message that the station does not know.
    Message(MessageId),
    /// `send` with nothing in the send buffer.
    NothingCreated,
    /// A buffer has another length than the message.
    Length,
    /// A guard compares a word that its buffer does not have.
    Index,
}
