//! Which process: a number alone may be another process's by tomorrow.

use super::threads;
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};
use std::io;

/// A process, told from all others there were and will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks since boot.
    pub start: u64,
    /// The boot that it runs in.
    pub boot: String,
}

/// A living process, held by a descriptor: what is done to it is done to no other.
#[derive(Debug)]
pub struct Living(OwnedFd);

impl Identity {
    /// This process's.
    ///
    /// # Errors
    ///
    /// `/proc` does not say.
    pub fn own() -> io::Result<Self> {
        let pid = std::process::id();
        let start = start_of(pid).ok_or_else(|| io::Error::other("/proc lacks this process"))?;
        Ok(Self { pid, start, boot: boot()? })
    }

    /// The process, if it lives.
    ///
    /// # Errors
    ///
    /// The kernel does not say.
    pub fn living(&self) -> io::Result<Option<Living>> {
        let pid = i32::try_from(self.pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| boot().is_ok_and(|now| now == self.boot)) else {
            return Ok(None);
        };
        let living = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(None),
            opened => Living(opened?),
        };
        // Who has the number now, and started then, had it already when the descriptor was opened.
        let same = start_of(self.pid) == Some(self.start);
        Ok((same && !living.ends_within(Span::ZERO)?).then_some(living))
    }
}

impl Living {
    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// It may not be sent.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match rustix::process::pidfd_send_signal(&self.0, signal) {
            Err(Errno::SRCH) => Ok(()), // it has ended
            sent => Ok(sent?),
        }
    }

    /// Waits for its end; whether it came.
    ///
    /// # Errors
    ///
    /// The kernel does not say.
    pub fn ends_within(&self, span: Span) -> io::Result<bool> {
        let ns = span.as_ns();
        let time = Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
        let mut ended = [PollFd::new(&self.0, PollFlags::IN)];
        match rustix::event::poll(&mut ended, Some(&time)) {
            Err(Errno::INTR) => Ok(false),
            polled => Ok(polled? > 0),
        }
    }
}

fn start_of(pid: u32) -> Option<u64> {
    threads::task(&Machine::this(), pid).map(|task| task.start)
}

fn boot() -> io::Result<String> {
    Machine::this().read(super::journal::BOOT_ID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_itself_until_it_ends_and_no_other_is() {
        let own = Identity::own().unwrap();
        assert!(own.living().unwrap().is_some());
        for other in [
            Identity { start: own.start + 1, ..own.clone() },
            Identity { boot: "another".to_owned(), ..own.clone() },
            Identity { pid: 0, ..own.clone() },
            Identity { pid: u32::MAX, ..own },
        ] {
            assert!(other.living().unwrap().is_none(), "{other:?}");
        }
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id();
        let of_child = Identity { pid, start: start_of(pid).unwrap(), boot: boot().unwrap() };
        let living = of_child.living().unwrap().expect("it runs");
        assert!(!living.ends_within(Span::from_ms(1)).unwrap());
        living.signal(Signal::KILL).unwrap();
        assert!(living.ends_within(Span::from_s(600)).unwrap());
        assert!(of_child.living().unwrap().is_none(), "it is not waited for yet, and is over");
        child.wait().unwrap();
        assert!(of_child.living().unwrap().is_none());
        living.signal(Signal::KILL).unwrap();
    }
}
