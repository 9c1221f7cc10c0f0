//! What programs took from elsewhere than the library, where they must not: in virtual time.

use serde::{Deserialize, Serialize};

/// What a call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutsideKind {
    /// A clock of the machine.
    Clock,
    /// A wait that ends by the machine's time, or one of its timers.
    Wait,
    /// The machine's randomness.
    Randomness,
    /// A thread that has not joined the run.
    Thread,
    /// Another process.
    Process,
}

/// The calls of one function at one place of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutsideCall {
    /// What they took.
    pub kind: OutsideKind,
    /// The function of the C library that was called.
    pub function: String,
    /// The file that the calling code is in; empty if it is in none.
    pub object: String,
    /// Where in it: the address in this file, as `addr2line` takes it.
    pub offset: u64,
    /// The function that the call is in, and how many octets from its beginning; null if the file
    /// does not say.
    pub symbol: Option<String>,
    /// Whether that file has Onbeat's library in it, or is linked with it: then its code is the
    /// program's own. Others, as an interpreter, may make such calls for themselves.
    pub own: bool,
    /// Whether the program had joined the run; else it was before that.
    pub in_run: bool,
    /// The run's number of the thread that was the first to make it; null if that thread is not
    /// one of the run's.
    pub thread: Option<u32>,
    /// How many there were.
    pub calls: u64,
    /// The instant of the first one in network time; null before the run's start.
    pub first_ns: Option<i64>,
}

/// What is known of a program's calls outside of the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramOutside {
    /// The program's name.
    pub program: String,
    /// Why its calls are not known; null if they are.
    pub unknown: Option<String>,
    /// Its calls in order of the instant of the first; null if they are not known.
    pub calls: Option<Vec<OutsideCall>>,
    /// How many further calls were at more places than are kept, or made threads of which it is
    /// not known whether they joined.
    pub left_out: u64,
}
