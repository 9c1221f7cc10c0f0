//! Exit codes. Documented in `onbeat --help` and docs/cli.md.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything is fine.
    Fine = 0,
    /// The description, or the plan that follows from it, has errors; or what was compared is
    /// worse.
    Description = 1,
    /// The arguments are wrong; clap exits with the same.
    Usage = 2,
    /// A run or a simulation broke a promise.
    Broken = 3,
    /// A run ended before its time.
    Early = 4,
    /// The machine did not do what was asked: a file, a socket.
    Machine = 5,
    /// A run or a simulation was interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
