//! What an actor writes down.

use anyhow::{Context, Result};
use onbeat::Instant;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A file that has a line of what an actor has done before the actor continues.
#[derive(Debug)]
pub(crate) struct ActorLog(File);

impl ActorLog {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let mut options = File::options();
        let file = options.append(true).create(true).open(path);
        Ok(Self(file.with_context(|| path.display().to_string())?))
    }

    /// A line: the thread, the time by the host's clock and of the network if it is known, and what
    /// happened.
    pub(crate) fn say(&self, thread: usize, now: Option<Instant>, what: fmt::Arguments<'_>) {
        let mut line = format!("{thread} ");
        match now.and_then(|now| Some((now.local, now.network?))) {
            Some((local, network)) => {
                let _ = write!(line, "{} {}", local.as_ns(), network.as_ns());
            }
            None => line.push_str("- -"),
        }
        let _ = writeln!(line, " {what}");
        // One write: a process that dies has written all of it or nothing.
        let written = (&self.0).write_all(line.as_bytes());
        written.expect("an actor without a log proves nothing");
    }
}

/// Tells values apart (FNV-1a).
pub(crate) fn digest(value: &[u8]) -> u64 {
    let step = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
    value.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
