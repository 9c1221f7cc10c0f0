//! Memory that a thread of a run in virtual time shares with its coordinator, for their packets.
//!
//! A call that waits is then one hand-over to the coordinator and one back, by futex. A request
//! that is not answered needs no system call: the coordinator sees it with the next one that is, or
//! when it looks. What only the kernel can
//! carry, descriptors, comes over the thread's socket, which also tells when a side is gone.
//!
//! With an answer come offers: frames that wait for the program, as they would be answered with. It
//! takes one without a hand-over, and says so before the next. No other thread executes meanwhile.
//!
//! Layout: words, each on a cache line of its own; an answer; [`OFFERS`]; a ring of [`SLOTS`]
//! requests. A packet is its length and its octets in words. Neither side trusts what the other
//! writes: packets are copied out before they are read, and a length beyond [`MAX_PACKET`] is cut
//! to it.

use crate::coordinator::protocol::MAX_PACKET;
use crate::mapping::Mapping;
use onbeat_model::time::Span;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::thread::futex;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::clock::timeout;

/// What the memory is called where the system lists open files.
const NAME: &str = "onbeat-mailbox";
/// The octets of a cache line.
const LINE: usize = 64;
/// The octets of a packet's place.
const PLACE: usize = (8 + MAX_PACKET).next_multiple_of(LINE);
/// How many requests may be there that are not taken yet.
const SLOTS: u32 = 16;
/// How many frames may be offered.
pub const OFFERS: usize = 8;
/// Where answers are; before them are the words.
const ANSWER: usize = 6 * LINE;
const OFFERED: usize = ANSWER + PLACE;
const REQUESTS: usize = OFFERED + OFFERS * PLACE;
const SIZE: usize = REQUESTS + SLOTS as usize * PLACE;

/// The words, by the lines that they are on.
#[derive(Clone, Copy)]
enum Word {
    /// Counts requests: written by the program, and what the coordinator waits on.
    Posted,
    /// Counts requests that the coordinator has taken.
    Taken,
    /// Counts answers: written by the coordinator, and what the program waits on.
    Answered,
    /// The processor that the run's threads take turns on, from 1; 0: any.
    Processor,
    /// Whether the coordinator waits on [`Word::Posted`].
    Waits,
    /// How many frames are offered.
    Offered,
}

/// Either side's view of the memory of one thread.
#[derive(Debug)]
pub struct Mailbox {
    memory: Mapping,
}

impl Mailbox {
    /// New memory, and the descriptor by which the program maps it.
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create(NAME, flags)?;
        rustix::fs::ftruncate(&descriptor, SIZE as u64)?;
        // Who shrank it would end the other side by SIGBUS.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&descriptor, seals)?;
        Ok((Self::of(&descriptor)?, descriptor))
    }

    /// What the coordinator made.
    pub fn map(descriptor: &OwnedFd) -> io::Result<Self> {
        if rustix::fs::fstat(descriptor)?.st_size < SIZE as i64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Self::of(descriptor)
    }

    fn of(descriptor: &OwnedFd) -> io::Result<Self> {
        Ok(Self { memory: Mapping::shared(descriptor.as_fd(), SIZE, 0)? })
    }

    fn word(&self, word: Word) -> &AtomicU32 {
        let at = self.memory.at((word as usize * LINE) as u64, 4);
        // SAFETY: it lies within the mapping, aligned to a line, and is only accessed as an atomic.
        unsafe { at.cast().as_ref() }
    }

    /// The words of a packet's place: its length, then its octets.
    fn place(&self, offset: usize) -> &[AtomicU64] {
        let at = self.memory.at(offset as u64, PLACE).cast();
        // SAFETY: as above; a place is whole lines.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), PLACE / 8) }
    }

    fn request(&self, number: u32) -> &[AtomicU64] {
        self.place(REQUESTS + (number % SLOTS) as usize * PLACE)
    }

    /// The program's side: puts a request into the ring.
    pub fn post(&self, packet: &[u8]) {
        let posted = self.word(Word::Posted);
        let number = posted.load(Ordering::Relaxed);
        write(self.request(number), 0, packet);
        posted.store(number.wrapping_add(1), Ordering::SeqCst);
    }

    /// The program's side: whether one more request finds room. The last two places are for the one
    /// that asks for room and for the farewell.
    pub fn has_room(&self) -> bool {
        let posted = self.word(Word::Posted).load(Ordering::Relaxed);
        posted.wrapping_sub(self.word(Word::Taken).load(Ordering::Acquire)) < SLOTS - 2
    }

    /// The program's side: has the coordinator look at what was posted.
    pub fn call(&self) {
        if self.word(Word::Waits).load(Ordering::SeqCst) != 0 {
            // Without a waiter there is nobody to wake.
            let _ = futex::wake(self.word(Word::Posted), futex::Flags::empty(), 1);
        }
    }

    /// The program's side: waits for so long until there are more than `heard` answers; the last
    /// one's length.
    pub fn hear(&self, heard: u32, into: &mut [u8; MAX_PACKET], patience: Span) -> Option<usize> {
        let answered = self.word(Word::Answered);
        if answered.load(Ordering::Acquire) == heard {
            wait(answered, heard, patience);
            if answered.load(Ordering::Acquire) == heard {
                return None;
            }
        }
        Some(read(self.place(ANSWER), into))
    }

    /// The coordinator's side, before an answer: offers frames of ends, each in the packet that
    /// `make` puts into the buffer for it.
    pub fn offer<T>(
        &self,
        frames: impl Iterator<Item = (u32, T)>,
        mut make: impl FnMut(T, &mut [u8; MAX_PACKET]) -> usize,
    ) {
        let mut count = 0;
        for (at, (end, frame)) in frames.take(OFFERS).enumerate() {
            let mut packet = [0; MAX_PACKET];
            let length = make(frame, &mut packet);
            write(self.place(OFFERED + at * PLACE), end, &packet[..length]);
            count += 1;
        }
        let offered = self.word(Word::Offered);
        if count != 0 || offered.load(Ordering::Relaxed) != 0 {
            offered.store(count, Ordering::Relaxed);
        }
    }

    /// The program's side: the first place at which a frame of an end is offered, of those whose
    /// bit is not among `taken`.
    pub fn offered(&self, end: u32, taken: u8) -> Option<usize> {
        let count = self.word(Word::Offered).load(Ordering::Relaxed) as usize;
        let is_its = |at: &usize| {
            let first = &self.place(OFFERED + at * PLACE)[0];
            taken & 1 << at == 0 && first.load(Ordering::Relaxed) >> 32 == u64::from(end)
        };
        (0..count.min(OFFERS)).find(is_its)
    }

    /// The program's side: the packet that is offered there; its length.
    pub fn read_offer(&self, at: usize, into: &mut [u8; MAX_PACKET]) -> usize {
        read(self.place(OFFERED + at % OFFERS * PLACE), into)
    }

    /// The coordinator's side: gives an answer, and has the program continue.
    pub fn answer(&self, packet: &[u8]) {
        write(self.place(ANSWER), 0, packet);
        let answered = self.word(Word::Answered);
        answered.fetch_add(1, Ordering::Release);
        // As above.
        let _ = futex::wake(answered, futex::Flags::empty(), 1);
    }

    /// The coordinator's side: waits for so long until there is a request, and takes it; its
    /// length.
    pub fn take(&self, into: &mut [u8; MAX_PACKET], patience: Span) -> Option<usize> {
        let (taken, posted) = (self.word(Word::Taken), self.word(Word::Posted));
        let number = taken.load(Ordering::Relaxed);
        if posted.load(Ordering::Acquire) == number {
            let waits = self.word(Word::Waits);
            waits.store(1, Ordering::SeqCst);
            // Not yet posted when this was stored, or the kernel sees it: it does not sleep then.
            wait(posted, number, patience);
            waits.store(0, Ordering::Relaxed);
            if posted.load(Ordering::Acquire) == number {
                return None;
            }
        }
        let length = read(self.request(number), into);
        taken.store(number.wrapping_add(1), Ordering::Release);
        Some(length)
    }

    /// The coordinator's side: on which processor the program's thread is to continue; `None`: any.
    pub fn set_processor(&self, processor: Option<usize>) {
        let word = processor.and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(0);
        self.word(Word::Processor).store(word, Ordering::Relaxed);
    }

    /// The program's side: where it is to continue.
    pub fn processor(&self) -> Option<usize> {
        let word = self.word(Word::Processor).load(Ordering::Relaxed);
        word.checked_sub(1).map(|at| at as usize)
    }
}

/// Waits until a word is another one, or the time is over, or without a reason.
fn wait(word: &AtomicU32, old: u32, patience: Span) {
    // All that may come back has the caller look at the word.
    let _: Result<(), Errno> =
        futex::wait(word, futex::Flags::empty(), old, timeout(patience).as_ref());
}

/// Writes a packet into its place, and what it is of.
fn write(place: &[AtomicU64], of: u32, packet: &[u8]) {
    let Some((length, words)) = place.split_first() else { return };
    length.store(packet.len() as u64 | u64::from(of) << 32, Ordering::Relaxed);
    let (whole, rest) = packet.as_chunks::<8>();
    for (word, octets) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*octets), Ordering::Relaxed);
    }
    if let Some(word) = words.get(whole.len()) {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        word.store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
}

/// Copies a packet out of its place; its length.
fn read(place: &[AtomicU64], into: &mut [u8; MAX_PACKET]) -> usize {
    let Some((length, words)) = place.split_first() else { return 0 };
    let length = (length.load(Ordering::Relaxed) as u32 as usize).min(MAX_PACKET);
    for (octets, word) in into[..length].chunks_mut(8).zip(words) {
        octets.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..octets.len()]);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonoTime;

    const LONG: Span = Span::from_s(60);

    fn both() -> (Mailbox, Mailbox) {
        let (ours, descriptor) = Mailbox::new().unwrap();
        (ours, Mailbox::map(&descriptor).unwrap())
    }

    /// What comes, whatever wakes who waits for it; but not only because the time is over.
    fn until_some(mut ask: impl FnMut() -> Option<usize>) -> usize {
        let until = MonoTime::now() + LONG;
        let got = loop {
            if let Some(got) = ask() {
                break got;
            }
        };
        assert!(MonoTime::now() < until, "nobody was woken");
        got
    }

    #[test]
    fn packets_come_in_order_and_whole() {
        let (coordinator, program) = both();
        let mut packet = [0; MAX_PACKET];
        for round in 0..100 {
            for length in 0..SLOTS as usize - 2 {
                assert!(program.has_room());
                program.post(&vec![length as u8; length * round]);
            }
            assert!(!program.has_room());
            for length in 0..SLOTS as usize - 2 {
                let got = coordinator.take(&mut packet, Span::ZERO).unwrap();
                assert_eq!(packet[..got], vec![length as u8; length * round]);
            }
            assert_eq!(coordinator.take(&mut packet, Span::ZERO), None);
        }
    }

    #[test]
    fn the_longest_packet_fits_and_no_longer_one_is_believed() {
        let (coordinator, program) = both();
        let (longest, mut packet) = ([7; MAX_PACKET], [0; MAX_PACKET]);
        program.post(&longest);
        assert_eq!(coordinator.take(&mut packet, LONG), Some(MAX_PACKET));
        assert_eq!(packet, longest);
        program.post(&[]);
        program.request(1)[0].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(coordinator.take(&mut packet, LONG), Some(MAX_PACKET));
    }

    #[test]
    fn an_answer_wakes_who_waits_and_is_heard_once() {
        let (coordinator, program) = both();
        let mut packet = [0; MAX_PACKET];
        assert_eq!(program.hear(0, &mut packet, Span::from_us(1)), None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut packet = [0; MAX_PACKET];
                for _ in 0..10_000 {
                    // A wake-up may come late, for a request that was taken without it.
                    let got = until_some(|| coordinator.take(&mut packet, LONG));
                    coordinator.answer(&packet[..got]);
                }
            });
            for number in 0..10_000_u32 {
                program.post(&number.to_le_bytes());
                program.call();
                assert_eq!(until_some(|| program.hear(number, &mut packet, LONG)), 4);
                assert_eq!(packet[..4], number.to_le_bytes());
            }
        });
        assert_eq!(program.hear(10_000, &mut packet, Span::ZERO), None);
    }

    #[test]
    fn frames_are_offered_by_their_ends_in_order() {
        let (coordinator, program) = both();
        let mut packet = [0; MAX_PACKET];
        let fill = |octet: u8, packet: &mut [u8; MAX_PACKET]| {
            packet[..3].fill(octet);
            3
        };
        assert_eq!(program.offered(0, 0), None);
        coordinator.offer([(5, 1), (0, 2), (5, 3)].into_iter(), fill);
        assert_eq!(program.offered(0, 0), Some(1));
        assert_eq!(program.offered(5, 0), Some(0));
        assert_eq!(program.offered(5, 1), Some(2));
        assert_eq!(program.offered(5, 5), None);
        assert_eq!(program.offered(4, 0), None);
        assert_eq!((program.read_offer(2, &mut packet), packet[..3].to_vec()), (3, vec![3; 3]));
        coordinator.offer((0..100).map(|end| (end, 0)), fill);
        assert_eq!(program.offered(7, 0), Some(7));
        assert_eq!(program.offered(8, 0), None);
        coordinator.offer(std::iter::empty::<(u32, u8)>(), fill);
        assert_eq!(program.offered(7, 0), None);
    }

    #[test]
    fn memory_of_another_size_is_refused() {
        let small = rustix::fs::memfd_create("small", MemfdFlags::CLOEXEC).unwrap();
        assert!(Mailbox::map(&small).is_err());
    }

    #[test]
    fn a_processor_is_told_or_none() {
        let (coordinator, program) = both();
        assert_eq!(program.processor(), None);
        coordinator.set_processor(Some(0));
        assert_eq!(program.processor(), Some(0));
        coordinator.set_processor(None);
        assert_eq!(program.processor(), None);
    }
}
