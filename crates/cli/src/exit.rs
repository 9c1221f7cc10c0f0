//! Exit codes. Documented in `onbeat --help` and docs/cli.md.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything is fine.
    Fine = 0,
    /// The description, or the plan that follows from it, has errors; `compare`: it is worse.
    Description = 1,
    /// The arguments are wrong; clap exits with the same.
    Usage = 2,
    /// A run or a simulation broke a promise; `tfg`: systems spoil each other's times.
    Broken = 3,
    /// A run ended before its time.
    Early = 4,
    /// The machine did not do what was asked: a file, a socket.
    Machine = 5,
    /// Nothing is proven, and nothing disproves it: the verdict of a time-flow graph.
    Unproven = 6,
    /// A run or a simulation was interrupted.
    Interrupted = 130,
}

impl Exit {
    /// The doctor has advice.
    pub(crate) const ADVICE: Self = Self::Description;
    /// The doctor found what keeps the machine from keeping a promise of the system.
    pub(crate) const BLOCKS: Self = Self::Usage;
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
