//! Memory that this process maps, to share it with the kernel.

use rustix::fd::BorrowedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::ptr::{NonNull, null_mut};

/// A mapping that is there as a whole: touching it never faults.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the process; who may access which part of it is up to its users.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of this process alone, all zeros.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let base = unsafe {
            mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags)?
        };
        Self::of(base, length)
    }

    /// What a descriptor has at `offset`.
    pub(crate) fn shared(socket: BorrowedFd<'_>, length: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as above.
        let base = unsafe { mmap(null_mut(), length, access, flags, socket, offset)? };
        Self::of(base, length)
    }

    fn of(base: *mut std::ffi::c_void, length: usize) -> io::Result<Self> {
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length })
    }

    /// Where it is, and how long.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.base.as_ptr() as u64, self.length as u64)
    }

    /// A pointer to `room` octets at `offset`.
    pub(crate) fn at(&self, offset: u64, room: usize) -> NonNull<u8> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = offset.saturating_add(room);
        assert!(end <= self.length, "{offset} + {room} is beyond {}", self.length);
        // SAFETY: the mapping is longer than that.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping without owning it. There is nothing to be done when
        // the kernel refuses.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
