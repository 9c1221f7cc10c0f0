//! The statements of a program as they are written: names are not known yet.

use super::lexer::{Span, WordComparison};
use onbeat_runtime::network_code::program::BufferRole;

/// Something that can be named, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The name, without quotes.
    pub(crate) text: String,
    /// Where.
    pub(crate) span: Span,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `station NAME`
    Station(Named),
    /// `medium RATE [tagged]`: cycles of an octet, if the rate is known.
    Medium {
        /// 1, 10 or 100, if it is one of the rates.
        octet_cycles: Option<u32>,
        /// Whether frames have a tag.
        tagged: bool,
        /// The whole of it.
        span: Span,
    },
    /// `const NAME = FORMULA`
    Constant(Named, Formula),
    /// `output NAME[…]`, `input NAME[…]`, and with a channel's length
    Buffer(BufferRole, Named, BufferLength),
    /// `message NAME = ID[WORDS]`
    Message(Named, Formula, Formula),
    /// `NAME:`
    Label(Named),
    /// An instruction, with its place.
    Instruction(Operation, Span),
    /// A declaration that is not formed right: its name is known all the same.
    Wrong(DeclarationKind, Named),
}

/// What a declaration declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclarationKind {
    /// `const`
    Constant,
    /// `output`, `input`
    Buffer,
    /// `message`
    Message,
    /// `station`
    Station,
}

/// How long a buffer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BufferLength {
    /// So many words.
    Words(Formula),
    /// As a message of a channel.
    Channel(Named),
}

/// An instruction with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `nop`
    Nop,
    /// `create BUFFER`
    Create(Named),
    /// `send MESSAGE`
    Send(Named),
    /// `receive MESSAGE, BUFFER`
    Receive(Named, Named),
    /// `future LABEL, DELAY`
    Future(Named, Formula),
    /// `halt`
    Halt,
    /// `sync master`
    SyncMaster,
    /// `sync slave, TIMEOUT`
    SyncSlave(Formula),
    /// `branch GUARD, LABEL`, `goto LABEL`
    Branch(NamedGuard, Named),
}

/// A guard with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedGuard {
    /// `not`
    pub(crate) negated: bool,
    /// What it looks at.
    pub(crate) condition: NamedCondition,
}

/// A condition with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedCondition {
    /// `always`
    Always,
    /// `count(COUNTER, N)`
    Count(Formula, Formula),
    /// `fresh(MESSAGE)`
    Fresh(Named),
    /// `received`
    Received,
    /// `sync_timeout`
    SyncTimeout,
    /// `overrun`
    Overrun,
    /// `flag(N)`
    Flag(Formula),
    /// `transmitting`
    Transmitting,
    /// `link_up`
    LinkUp,
    /// `BUFFER[I] < …`
    Compare(NamedWord, WordComparison, Compared),
}

/// `BUFFER[I]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedWord {
    /// The buffer.
    pub(crate) buffer: Named,
    /// Which word.
    pub(crate) index: Formula,
}

/// What a word is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// A constant.
    Constant(Formula),
    /// Another word.
    Word(NamedWord),
}

/// What a number or time is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Formula {
    /// How.
    pub(crate) kind: FormulaKind,
    /// Where.
    pub(crate) span: Span,
}

/// Kinds of formulas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormulaKind {
    /// A number.
    Number(i64),
    /// A number of units, of so many nanoseconds.
    Time(i64, i64),
    /// A constant.
    Name(String),
    /// `frame(WORDS)`
    Frame(Box<Formula>),
    /// `gap()`
    Gap,
    /// `-A`
    Negative(Box<Formula>),
    /// `A + B` and so on.
    Binary(Box<Formula>, Arithmetic, Box<Formula>),
}

/// Operators of formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Over,
}
