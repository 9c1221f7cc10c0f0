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

    /// Takes back the entry that was put in last, if the kernel has not taken it. For rings that
    /// the kernel consumes in calls of this thread only.
    pub(super) fn take_back(&mut self) -> bool {
        let producer = self.word(self.offsets.producer).load(Ordering::Relaxed);
        let consumer = self.word(self.offsets.consumer).load(Ordering::Acquire);
        let is_there = producer != consumer;
        if is_there {
            self.word(self.offsets.producer).store(producer.wrapping_sub(1), Ordering::Release);
        }
        is_there
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
    /// Where the entry of a position is, and the lap of that position, below [`CHUNK`]; before the
    /// first lap an entry has 0.
    fn place(&self, position: u32) -> (&AtomicU64, u64) {
        // SAFETY: the entry is aligned and within the mapping, which lives as long as this.
        let entry = unsafe { self.entry(position).cast().as_ref() };
        (entry, (u64::from(position / self.entries) + 1) % CHUNK)
    }

    /// Puts a chunk into a fill ring that has room for all chunks, while other threads may do so
    /// too. Without locks: a thread that is stopped in here holds up no other.
    ///
    /// An entry says in which lap it was written, in the bits of an address within its chunk, which
    /// the kernel does not look at. So whoever finds an entry of this lap advances the producer for
    /// the one who wrote it. One who was stopped writes nothing over a later entry, unless it slept
    /// for exactly a multiple of 2,048 laps and the same chunk is there.
    pub(super) fn push_shared(&self, chunk: u64) {
        debug_assert_eq!(chunk % CHUNK, 0, "the begin of a chunk");
        let producers = self.word(self.offsets.producer);
        loop {
            let producer = producers.load(Ordering::Acquire);
            let (entry, lap) = self.place(producer);
            let found = entry.load(Ordering::Acquire);
            let is_free = (found + 1) % CHUNK == lap;
            let (new, order) = (chunk | lap, Ordering::AcqRel);
            let is_ours =
                is_free && entry.compare_exchange(found, new, order, Ordering::Relaxed).is_ok();
            if is_ours || found % CHUNK == lap {
                let next = producer.wrapping_add(1);
                // It fails when another thread has done it.
                let _ = producers.compare_exchange(producer, next, order, Ordering::Relaxed);
            }
            if is_ours {
                return;
            }
        }
    }

    /// Takes an entry out, if there is one, while other threads may do so too: whoever advances the
    /// consumer has it. For a ring that is used in no other way.
    pub(super) fn pop_shared(&self) -> Option<u64> {
        let consumers = self.word(self.offsets.consumer);
        let mut consumer = consumers.load(Ordering::Acquire);
        loop {
            if consumer == self.word(self.offsets.producer).load(Ordering::Acquire) {
                return None;
            }
            // The kernel writes it again only after the consumer has advanced: then what is read
            // here is not used.
            let value = self.place(consumer).0.load(Ordering::Relaxed);
            let next = consumer.wrapping_add(1);
            match consumers.compare_exchange(consumer, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(value),
                Err(other) => consumer = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::os::fd::AsFd;

    const ENTRIES: u32 = 8;

    /// A fill ring as the kernel lays one out, in memory that no kernel reads.
    fn ring() -> Ring<u64> {
        let file =
            rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
        rustix::fs::ftruncate(&file, 4_096).expect("as long");
        let offsets = XdpRingOffset { producer: 0, consumer: 64, desc: 128, flags: None };
        Ring::new(file.as_fd(), &offsets, ENTRIES, 0).expect("mapped")
    }

    /// What the kernel takes out: it masks the lap off.
    fn taken(ring: &mut Ring<u64>) -> Option<u64> {
        ring.pop().map(|entry| entry / CHUNK)
    }

    #[test]
    fn chunks_come_out_in_the_order_in_which_they_were_put_in_for_any_number_of_laps() {
        let mut ring = ring();
        for lap in 0..3 * CHUNK {
            for chunk in 0..u64::from(ENTRIES) {
                ring.push_shared((chunk + lap) * CHUNK);
            }
            for chunk in 0..u64::from(ENTRIES) {
                assert_eq!(taken(&mut ring), Some(chunk + lap));
            }
            assert_eq!(taken(&mut ring), None);
        }
    }

    #[test]
    fn an_end_that_stops_before_it_has_told_of_its_chunk_holds_up_no_other() {
        let mut ring = ring();
        // It has the entry, and has been stopped.
        let (entry, lap) = ring.place(0);
        entry.store((5 * CHUNK) | lap, Ordering::Relaxed);
        assert_eq!(taken(&mut ring), None);
        ring.push_shared(6 * CHUNK);
        assert_eq!([taken(&mut ring), taken(&mut ring)], [Some(5), Some(6)]);
        assert_eq!(taken(&mut ring), None);
    }

    #[test]
    fn many_threads_that_give_chunks_back_lose_none_and_double_none() {
        let ring = &ring();
        let (chunks, threads) = (u64::from(ENTRIES), 4);
        // What was taken out and is to be given back; each chunk is in here, in the ring, or with
        // a thread between the two.
        let (give, from) = std::sync::mpsc::channel();
        let from = std::sync::Mutex::new(from);
        (0..chunks).for_each(|chunk| ring.push_shared(chunk * CHUNK));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = from.lock().expect("no panic").recv();
                        let Ok(chunk) = next else { return };
                        ring.push_shared(chunk * CHUNK);
                    }
                });
            }
            for _ in 0..50_000 {
                let entry = loop {
                    match ring.pop_shared() {
                        Some(entry) => break entry,
                        None => std::thread::yield_now(),
                    }
                };
                give.send(entry / CHUNK).expect("threads are there");
            }
            drop(give);
        });
        let left: BTreeSet<u64> =
            std::iter::from_fn(|| ring.pop_shared()).map(|e| e / CHUNK).collect();
        assert_eq!(left.into_iter().collect::<Vec<_>>(), (0..chunks).collect::<Vec<_>>());
        assert_eq!(ring.pop_shared(), None);
    }
}
