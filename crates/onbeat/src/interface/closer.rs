//! Closes sockets beside each other. Before the kernel frees an AF_PACKET socket it waits until no
//! processor looks at it any more: some ten milliseconds for each that are closed in a row, but the
//! same ones for all that are closed at a time.

use crate::fork::process;
use crate::interface::synchronisation::stay_out_of_the_way;
use rustix::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// The most threads that close.
const CLOSERS: usize = 64;
/// Octets of the stack of each.
const STACK: usize = 64 << 10;

/// What is to be closed, and how many threads do.
#[derive(Debug)]
struct Closers {
    sockets: Vec<OwnedFd>,
    threads: usize,
    /// Whose threads these are: a forked child has none.
    process: u32,
}

static CLOSERS_OF_PROCESS: Mutex<Closers> =
    Mutex::new(Closers { sockets: Vec::new(), threads: 0, process: 0 });
static IDLE: Condvar = Condvar::new();

fn closers() -> MutexGuard<'static, Closers> {
    let mut closers = CLOSERS_OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    if closers.process != process() {
        *closers = Closers { sockets: Vec::new(), threads: 0, process: process() };
    }
    closers
}

/// Closes a socket before [`finish`] returns. Not for real-time paths.
pub(super) fn close(socket: OwnedFd) {
    let mut closers = closers();
    closers.sockets.push(socket);
    if closers.threads == CLOSERS {
        return;
    }
    let thread = Builder::new().name("onbeat-close".to_owned()).stack_size(STACK);
    if thread.spawn(run).is_ok() {
        closers.threads += 1;
    } else if closers.threads == 0 {
        closers.sockets.clear();
    }
}

/// Waits until all sockets are closed that were given to [`close`].
pub(crate) fn finish() {
    let mut closers = closers();
    while closers.threads > 0 {
        closers = IDLE.wait(closers).unwrap_or_else(PoisonError::into_inner);
    }
}

fn run() {
    stay_out_of_the_way();
    loop {
        let mut all = closers();
        let Some(socket) = all.sockets.pop() else {
            all.threads -= 1;
            IDLE.notify_all();
            return;
        };
        drop(all);
        drop(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn all_that_was_given_to_it_is_closed_in_the_end() {
        let ends = (0..3 * CLOSERS).map(|_| {
            let (kept, given) = UnixStream::pair().expect("a pair");
            kept.set_read_timeout(Some(Duration::from_secs(60))).expect("it waits");
            close(given.into());
            kept
        });
        let ends: Vec<_> = ends.collect();
        finish();
        for mut end in ends {
            // As long as the other one is open it would be WouldBlock. Who forks has it, too, until
            // it executes something.
            assert_eq!(end.read(&mut [0; 1]).ok(), Some(0));
        }
        finish();
    }
}
