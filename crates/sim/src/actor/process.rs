//! Processes: a copy of this one, and descriptors that it was started with.

use rustix::fd::{FromRawFd, OwnedFd, RawFd};

/// Forks; the child does `what` and exits. Returns how the child exited, -1 if it was killed or
/// there was none.
pub(super) fn forked(what: impl FnOnce() -> u8) -> i32 {
    // SAFETY: in virtual time no other thread of this program executes now, and none holds a lock
    // across a call of the run, so that the child may do what its parent may.
    match unsafe { libc::fork() } {
        -1 => -1,
        0 => {
            let code = what();
            // SAFETY: ends the child without its parent's cleanup.
            unsafe { libc::_exit(i32::from(code)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the place for the status is valid.
            let got = unsafe { libc::waitpid(child, &raw mut status, 0) };
            let exited = got == child && libc::WIFEXITED(status);
            if exited { libc::WEXITSTATUS(status) } else { -1 }
        }
    }
}

/// The descriptor that this process was started with, by its number.
pub(super) fn inherited(number: RawFd) -> OwnedFd {
    // SAFETY: the run opened it for this process, and nothing else here knows it: a rogue does not
    // use the library.
    unsafe { OwnedFd::from_raw_fd(number) }
}
