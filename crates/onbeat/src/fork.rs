//! Which process this is, for the price of a load: a forked child must not use what its parent
//! opened, and getpid() is a system call.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A word that every new process finds to be 0, however it was made (`MADV_WIPEONFORK`): it holds
/// the identifier of the process that looked last.
#[derive(Debug)]
struct Word(*mut u32);

// SAFETY: the mapping is there for as long as the process is, and only used as an atomic.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// `None` where the kernel has no such memory.
    fn new() -> Option<Self> {
        let length = rustix::param::page_size();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let page =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE) };
        let page = page.ok()?;
        // SAFETY: nothing but this word is in the page, and it is made for being wiped.
        unsafe { madvise(page, length, Advice::LinuxWipeOnFork) }.ok()?;
        Some(Self(page.cast()))
    }
}

static WORD: OnceLock<Option<Word>> = OnceLock::new();

/// The calling process's identifier. Real-time: a load, after the first call of a process;
/// allocates nothing.
#[inline]
pub(crate) fn process() -> u32 {
    let Some(word) = WORD.get_or_init(Word::new) else { return std::process::id() };
    // SAFETY: the page is mapped for ever, aligned, and used as this atomic only.
    let word = unsafe { AtomicU32::from_ptr(word.0) };
    match word.load(Ordering::Relaxed) {
        0 => {
            let process = std::process::id();
            word.store(process, Ordering::Relaxed);
            process
        }
        process => process,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_another_process_and_its_parent_stays_the_same() {
        let parent = process();
        assert_eq!(parent, std::process::id());
        // SAFETY: the child only calls what may be called after fork, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_another = process() != parent && process() == std::process::id();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!is_another)) };
        }
        let mut status = -1;
        // SAFETY: `status` is valid for writing.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!(process(), parent);
    }
}
