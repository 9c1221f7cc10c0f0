//! Memory that this process shares with the kernel: frames and rings (linux/if_xdp.h).

use crate::mapping::Mapping;
use rustix::fd::BorrowedFd;
use rustix::net::xdp::XdpRingOffset;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Octets of a chunk, the place of one frame: the least that the kernel takes. It keeps 256 for
/// itself; the longest frame has 1,518.
pub(super) const CHUNK: u64 = 2_048;

/// Octets of a stamp before a frame: [`STAMP_MARK`], then when it came.
pub(super) const STAMP: u64 = 16;
/// Tells a stamp from what another frame has left there.
pub(super) const STAMP_MARK: u64 = 0x0b_ea_75_7a;

/// The memory of the frames.
#[derive(Debug)]
pub(super) struct Frames {
    memory: Mapping,
}

impl Frames {
    /// Room for so many chunks.
    pub(super) fn new(chunks: u64) -> io::Result<Self> {
        Ok(Self { memory: Mapping::anonymous((chunks * CHUNK) as usize)? })
    }

    /// Where it is, and how long.
    pub(super) fn range(&self) -> (u64, u64) {
        self.memory.range()
    }

    /// Puts the parts one after the other into a chunk; returns how many octets these are.
    ///
    /// # Safety
    /// The chunk must be the caller's: no ring has it, and no other end.
    pub(super) unsafe fn write(&self, chunk: u64, parts: [&[u8]; 2]) -> usize {
        let length = parts[0].len() + parts[1].len();
        assert!(length as u64 <= CHUNK, "a frame fits in a chunk");
        let to = self.memory.at(chunk, length);
        // SAFETY: there are `length` octets, the caller's, in a mapping that no part is in.
        unsafe {
            to.copy_from_nonoverlapping(NonNull::from(parts[0]).cast(), parts[0].len());
            let to = to.add(parts[0].len());
            to.copy_from_nonoverlapping(NonNull::from(parts[1]).cast(), parts[1].len());
        }
        length
    }

    /// Fills `into` from the octets at `address`.
    ///
    /// # Safety
    /// The chunk around them must be the caller's.
    pub(super) unsafe fn read(&self, address: u64, into: &mut [u8]) {
        let from = self.memory.at(address, into.len());
        // SAFETY: there are so many octets, the caller's, in a mapping that `into` is not in.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *into).cast(), into.len()) };
    }

    /// Takes the stamp that the program in the kernel has put before the frame at `address`, in
    /// nanoseconds of CLOCK_MONOTONIC; `None` where the driver gave it no room.
    ///
    /// # Safety
    /// The chunk around them must be the caller's.
    pub(super) unsafe fn take_stamp(&self, address: u64) -> Option<i64> {
        if address % CHUNK < STAMP {
            return None;
        }
        let place = self.memory.at(address - STAMP, STAMP as usize).cast::<[u64; 2]>();
        // SAFETY: there are so many octets, the caller's. It is not there a second time, for a
        // later frame in this chunk that has none.
        let [mark, at] = unsafe {
            let stamp = place.read_unaligned();
            place.write_unaligned([0; 2]);
            stamp
        };
        i64::try_from(at).ok().filter(|_| mark == STAMP_MARK)
    }
}

/// A ring with one producer and one consumer, one of which is the kernel.
#[derive(Debug)]
pub(super) struct Ring<T> {
    memory: Mapping,
    offsets: XdpRingOffset,
    entries: u32,
    kind: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Maps a ring of a socket that has one of so many entries, a power of two.
    pub(super) fn new(
        socket: BorrowedFd<'_>,
        offsets: &XdpRingOffset,
        entries: u32,
        page: u64,
    ) -> io::Result<Self> {
        let length = offsets.desc as usize + entries as usize * size_of::<T>();
        let memory = Mapping::shared(socket, length, page)?;
        Ok(Self { memory, offsets: *offsets, entries, kind: std::marker::PhantomData })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel says that there is an aligned 32-bit word, and accesses it atomically;
        // the mapping lives as long as the reference.
        unsafe { self.memory.at(offset, 4).cast().as_ref() }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        let index = u64::from(index & (self.entries - 1));
        self.memory.at(self.offsets.desc + index * size_of::<T>() as u64, size_of::<T>()).cast()
    }

    /// Puts an entry in, if there is room. For rings that the kernel consumes.
    pub(super) fn push(&mut self, value: T) -> bool {
        let producer = self.word(self.offsets.producer).load(Ordering::Relaxed);
        let consumer = self.word(self.offsets.consumer).load(Ordering::Acquire);
        if producer.wrapping_sub(consumer) >= self.entries {
            return false;
        }
        // SAFETY: the entry is aligned, within the mapping, and ours until the producer advances.
        unsafe { self.entry(producer).write(value) };
        self.word(self.offsets.producer).store(producer.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes an entry out, if there is one. For rings that the kernel fills with plain numbers.
    pub(super) fn pop(&mut self) -> Option<T> {
        let consumer = self.word(self.offsets.consumer).load(Ordering::Relaxed);
        let producer = self.word(self.offsets.producer).load(Ordering::Acquire);
        if producer == consumer {
            return None;
        }
        // SAFETY: the entry is aligned, within the mapping, written by the kernel, and ours until
        // the consumer advances.
        let value = unsafe { self.entry(consumer).read() };
        self.word(self.offsets.consumer).store(consumer.wrapping_add(1), Ordering::Release);
        Some(value)
    }

    /// What was put in and not taken out yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = T> {
        let consumer = self.word(self.offsets.consumer).load(Ordering::Acquire);
        let producer = self.word(self.offsets.producer).load(Ordering::Relaxed);
        let count = producer.wrapping_sub(consumer).min(self.entries);
        // SAFETY: these entries were written, and are plain numbers.
        (0..count).map(move |n| unsafe { self.entry(consumer.wrapping_add(n)).read() })
    }

    /// Whether the kernel wants to be told of new entries.
    pub(super) fn wants_wakeup(&self) -> bool {
        let wanted =
            |offset| self.word(offset).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP;
        self.offsets.flags.map_or(0, wanted) != 0
    }
}

impl Ring<u64> {
    /// Takes an entry out, if there is one, while other threads may do so too: whoever advances the
    /// consumer has it. For a ring that is used in no other way.
    pub(super) fn pop_shared(&self) -> Option<u64> {
        let consumers = self.word(self.offsets.consumer);
        let mut consumer = consumers.load(Ordering::Acquire);
        loop {
            if consumer == self.word(self.offsets.producer).load(Ordering::Acquire) {
                return None;
            }
            // SAFETY: the entry is aligned and within the mapping. The kernel writes it again only
            // after the consumer has advanced: then what is read here is not used.
            let entry = unsafe { self.entry(consumer).cast::<AtomicU64>().as_ref() };
            let value = entry.load(Ordering::Relaxed);
            let next = consumer.wrapping_add(1);
            match consumers.compare_exchange(consumer, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(value),
                Err(other) => consumer = other,
            }
        }
    }
}

/// Chunks that were read and are not in the fill ring yet: a list that any thread may add to at
/// any time. An entry is a chunk's number plus one; 0 ends the list.
#[derive(Debug)]
pub(super) struct Returned {
    first: AtomicU32,
    next: Box<[AtomicU32]>,
}

impl Returned {
    /// An empty list of so many chunks at most.
    pub(super) fn new(chunks: u64) -> Self {
        Self { first: AtomicU32::new(0), next: (0..chunks).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Adds the chunk around an address, which must not be in the list.
    pub(super) fn push(&self, address: u64) {
        let chunk = (address / CHUNK) as u32;
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            self.next[chunk as usize].store(first, Ordering::Relaxed);
            let new = chunk + 1;
            match self.first.compare_exchange(first, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed) == 0
    }

    /// Takes all of them out.
    pub(super) fn take(&self) -> impl Iterator<Item = u64> {
        let mut at = self.first.swap(0, Ordering::Acquire);
        std::iter::from_fn(move || {
            let chunk = at.checked_sub(1)?;
            at = self.next[chunk as usize].load(Ordering::Relaxed);
            Some(u64::from(chunk) * CHUNK)
        })
    }
}
