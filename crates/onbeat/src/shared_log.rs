//! Record memory shared between a program and its coordinator: what a program recorded survives it.
//!
//! Layout: a header of 256 octets, then `capacity` records of 64 octets. The header holds, as u64,
//! [`Counters`] in the order of [`COUNTERS`], the stream identifier, the role (0 talker; of a
//! listener 1, and twice the number of messages that had expired), the channel's name, 32 octets
//! filled up with zeros, where the last message of another talker came from
//! ([`Source::to_bytes`]), the channel's declared interval, the sum of the latencies of all
//! received messages and the largest of them, in nanoseconds, and in the last place the number of
//! headers that follow each other there, 0 for 1. Programs of older libraries
//! leave 0 as the interval: their latencies are unknown. One writer, the program; who reads trusts
//! nothing that it reads there. The counts are there to be read while it runs (`onbeat stat`,
//! `onbeat top`), the records when it has stopped.

use onbeat_model::record::{Record, Role, flag};
use onbeat_model::system::Channel;
use onbeat_model::time::Span;
use onbeat_model::units::StreamId;
use onbeat_runtime::channel_io::{Log, Reason, Source, TransmitPoint, TransmitStamp};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Octets of a header.
pub const HEADER: usize = 256;
/// The most records that one end may keep: one gibioctet of them.
pub const MAX_CAPACITY: u32 = 1 << 24;
/// What the memory is called where the system lists open files.
pub const NAME: &str = "onbeat-records";

/// The counters' names, in the order of their places in memory.
pub const COUNTERS: [&str; 19] = [
    "recorded",
    "unrecorded",
    "sent",
    "received",
    "lost",
    "late",
    "duplicate",
    "rate_exceeded",
    "breaks",
    "rejected_shape",
    "rejected_stream",
    "rejected_size",
    "rejected_talker",
    "rejected_future",
    "rejected_damaged",
    "rejected_not_authentic",
    "rejected_unknown_key",
    "rejected_replayed",
    "rejected_stale",
];
const RECORDED: usize = 0;
const UNRECORDED: usize = 1;
const SENT: usize = 2;
const RECEIVED: usize = 3;
const LOST: usize = 4;
const LATE: usize = 5;
const DUPLICATE: usize = 6;
const RATE_EXCEEDED: usize = 7;
const BREAKS: usize = 8;
const REJECTED: usize = 9;
const STREAM_ID: usize = REJECTED + Reason::COUNT;
const ROLE: usize = STREAM_ID + 1;
/// By how much a message that had expired makes the word of the role greater: no other is free.
const AN_EXPIRED: u64 = 2;
const CHANNEL: usize = ROLE + 1;
const CHANNEL_OCTETS: usize = 32;
const OTHER_TALKER: usize = CHANNEL + CHANNEL_OCTETS / 8;
const INTERVAL: usize = OTHER_TALKER + Source::SIZE / 8;
const LATENCY_SUM: usize = INTERVAL + 1;
const LATENCY_WORST: usize = LATENCY_SUM + 1;
/// In the first header only.
const HEADERS: usize = HEADER / 8 - 1;
/// So many frames between two messages are looked for that the kernel did not take.
const NOT_TAKEN: usize = 16;
const _: () = assert!(COUNTERS.len() == STREAM_ID && LATENCY_WORST < HEADERS);

/// What has happened at an end so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that the end wrote.
    pub sent: u64,
    /// Messages that came for the program, each once.
    pub received: u64,
    /// Messages missing by their numbers.
    pub lost: u64,
    /// Messages that came after capture + D.
    pub late: u64,
    /// Of the received ones, those that were older than the lifespan and not handed over.
    pub expired: u64,
    /// Copies of messages that were there before.
    pub duplicate: u64,
    /// Writes that the declared rate did not allow at once.
    pub rate_exceeded: u64,
    /// Frames that never reached the program, per [`Reason`].
    pub rejected: [u64; Reason::COUNT],
    /// Messages whose latency was above the threshold that freezes the kernel's trace.
    pub breaks: u64,
    /// Records that found no room.
    pub unrecorded: u64,
    /// What the latencies of all received messages add up to, in nanoseconds, modulo 2⁶⁴. Latency
    /// is receipt minus capture; it is negative where clocks differ by more. Unknown, as is the
    /// largest one, where the interval is ([`Header::interval`]).
    pub latency_sum_ns: i64,
    /// The largest latency of them, in nanoseconds; 0 before the first message.
    pub latency_worst_ns: i64,
}

/// Where another talker's message came from, of these words.
fn other_talker(word: impl Fn(usize) -> u64) -> Option<Source> {
    let mut octets = [0; Source::SIZE];
    for (at, octets) in octets.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *octets = word(OTHER_TALKER + at).to_le_bytes();
    }
    Source::from_bytes(&octets)
}

/// The interval that a word is, if it is one.
fn interval(word: u64) -> Option<Span> {
    i64::try_from(word).ok().filter(|ns| *ns > 0).map(Span::from_ns)
}

impl Counters {
    /// All frames that never reached the program.
    pub fn rejected_in_all(&self) -> u64 {
        self.rejected.iter().fold(0, |all, one| all.saturating_add(*one))
    }

    /// What has been counted since `earlier`; none if a count has shrunk, because the end has begun
    /// again. The largest latency is that of all messages.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let mut rejected = self.rejected;
        for (now, then) in rejected.iter_mut().zip(earlier.rejected) {
            *now = now.checked_sub(then)?;
        }
        Some(Self {
            sent: self.sent.checked_sub(earlier.sent)?,
            received: self.received.checked_sub(earlier.received)?,
            lost: self.lost.checked_sub(earlier.lost)?,
            late: self.late.checked_sub(earlier.late)?,
            expired: self.expired.checked_sub(earlier.expired)?,
            duplicate: self.duplicate.checked_sub(earlier.duplicate)?,
            rate_exceeded: self.rate_exceeded.checked_sub(earlier.rate_exceeded)?,
            rejected,
            breaks: self.breaks.checked_sub(earlier.breaks)?,
            unrecorded: self.unrecorded.checked_sub(earlier.unrecorded)?,
            latency_sum_ns: self.latency_sum_ns.wrapping_sub(earlier.latency_sum_ns),
            latency_worst_ns: self.latency_worst_ns,
        })
    }

    fn from_words(count: impl Fn(usize) -> u64) -> Self {
        Self {
            sent: count(SENT),
            received: count(RECEIVED),
            lost: count(LOST),
            late: count(LATE),
            expired: count(ROLE) / AN_EXPIRED,
            duplicate: count(DUPLICATE),
            rate_exceeded: count(RATE_EXCEEDED),
            rejected: Reason::ALL.map(|reason| count(REJECTED + reason as usize)),
            breaks: count(BREAKS),
            unrecorded: count(UNRECORDED),
            latency_sum_ns: count(LATENCY_SUM).cast_signed(),
            latency_worst_ns: count(LATENCY_WORST).cast_signed(),
        }
    }
}

/// Which end it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The channel's name, at most 32 octets of it.
    pub channel: String,
    /// Its stream.
    pub stream_id: StreamId,
    /// Which end.
    pub role: Role,
}

impl Identity {
    fn from_words(word: impl Fn(usize) -> u64) -> Self {
        let words = (0..CHANNEL_OCTETS / 8).map(|at| word(CHANNEL + at).to_le_bytes());
        let name: Vec<u8> = words.flatten().take_while(|octet| *octet != 0).collect();
        let role = if word(ROLE) == 0 { Role::Talker } else { Role::Listener };
        Self {
            channel: String::from_utf8_lossy(&name).into_owned(),
            stream_id: StreamId(word(STREAM_ID)),
            role,
        }
    }
}

/// A header in somebody else's memory: any octets are one.
#[derive(Clone, Copy, Debug)]
pub struct Header([u8; HEADER]);

impl Header {
    /// The one that these octets are.
    pub fn new(octets: [u8; HEADER]) -> Self {
        Self(octets)
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0.as_chunks::<8>().0[at])
    }

    /// How many headers there say that they are, this first one included.
    pub fn headers(&self) -> usize {
        usize::try_from(self.word(HEADERS)).unwrap_or(MAX_ENDS).clamp(1, MAX_ENDS)
    }

    /// Which end it is; `None` when this is unknown.
    pub fn identity(&self) -> Option<Identity> {
        Some(Identity::from_words(|at| self.word(at))).filter(|i| !i.channel.is_empty())
    }

    /// What it says has happened at the end.
    pub fn counters(&self) -> Counters {
        Counters::from_words(|at| self.word(at))
    }

    /// What it says is the channel's declared interval; `None` when this is unknown, as are then
    /// the latencies of its counters.
    pub fn interval(&self) -> Option<Span> {
        interval(self.word(INTERVAL))
    }

    /// Where it says the last message of another talker came from.
    pub fn other_talker(&self) -> Option<Source> {
        other_talker(|at| self.word(at))
    }
}

/// Makes the memory for `capacity` records.
pub fn create(capacity: u32) -> io::Result<OwnedFd> {
    memory(size(capacity))
}

fn memory(length: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create(NAME, flags)?;
    rustix::fs::ftruncate(&memory, length as u64)?;
    // A program that shrank the memory would kill its coordinator with SIGBUS.
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memory)
}

const fn size(capacity: u32) -> usize {
    HEADER + capacity as usize * Record::SIZE
}

/// The counters of all ends of one program that keeps no records.
#[derive(Debug)]
pub struct Board {
    memory: OwnedFd,
    mapping: Arc<Mapping>,
    places: Arc<Mutex<Places>>,
}

/// Which places of a board are free.
#[derive(Debug, Default)]
struct Places {
    used: usize,
    free: Vec<usize>,
}

/// An end's place on a board, free again when it goes.
#[derive(Debug)]
struct HeaderPlace {
    at: usize,
    /// The process whose end it is; a forked child has only a copy.
    owner: u32,
    places: Arc<Mutex<Places>>,
}

impl HeaderPlace {
    fn take(places: &Arc<Mutex<Places>>) -> Option<Self> {
        let mut held = places.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.free.pop().or_else(|| {
            held.used += 1;
            (held.used <= MAX_ENDS).then_some(held.used - 1)
        })?;
        Some(Self { at, owner: crate::fork::process(), places: Arc::clone(places) })
    }
}

impl Drop for HeaderPlace {
    fn drop(&mut self) {
        let mut held = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        held.free.push(self.at);
    }
}

/// The most ends that a board has room for.
pub const MAX_ENDS: usize = 8_192;

impl Board {
    /// An empty board. Its memory is given out as ends ask for it, and stays to be read by others
    /// as long as the board is there.
    pub fn new() -> io::Result<Self> {
        let memory = memory(MAX_ENDS * HEADER)?;
        let mapping = Arc::new(Mapping::new(&memory, MAX_ENDS * HEADER, MapFlags::SHARED)?);
        Ok(Self { memory, mapping, places: Arc::default() })
    }

    /// Room for one more end.
    pub fn end(&self) -> io::Result<SharedLog> {
        let place = HeaderPlace::take(&self.places).ok_or(io::ErrorKind::OutOfMemory)?;
        let at = place.at;
        let log = SharedLog { mapping: Arc::clone(&self.mapping), capacity: 0, place: Some(place) };
        // Touched here, so that counting does not fault; of the first place one word is everyone's.
        (0..HEADER / 8)
            .filter(|word| *word != HEADERS)
            .for_each(|word| log.counter(word).store(0, Ordering::Relaxed));
        log.everyones(HEADERS).fetch_max(at as u64 + 1, Ordering::Release);
        Ok(log)
    }

    /// The memory, for others to look at.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

/// Mapped memory.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to the value, lives until it is dropped and is not tied to a thread;
// all access goes through `SharedLog`, of which each has its own part of it.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(memory: impl AsFd, length: usize, flags: MapFlags) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases no Rust memory.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                memory,
                0,
            )?
        };
        Ok(Self { base: base.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing refers to it any more. A
        // failure to unmap could only leak it.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.length) };
    }
}

/// One end's records and counts in mapped memory.
#[derive(Debug)]
pub struct SharedLog {
    mapping: Arc<Mapping>,
    capacity: u32,
    /// Its place, if that is on a board.
    place: Option<HeaderPlace>,
}

impl SharedLog {
    /// Maps the memory and touches all of it, so that no later access faults.
    pub fn map(memory: impl AsFd, capacity: u32) -> io::Result<Self> {
        let held = rustix::fs::fstat(&memory)?.st_size;
        if capacity > MAX_CAPACITY || (held as u64) < size(capacity) as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let mapping = Arc::new(Mapping::new(memory, size(capacity), flags)?);
        Ok(Self { mapping, capacity, place: None })
    }

    /// The same, and [says](Self::introduce) which end of a channel's it is.
    pub fn of_end(
        memory: impl AsFd,
        capacity: u32,
        channel: &Channel,
        role: Role,
    ) -> io::Result<Self> {
        let mut log = Self::map(memory, capacity)?;
        let (channel, stream_id) = (channel.name.clone(), channel.stream_id);
        log.introduce(&Identity { channel, stream_id, role });
        Ok(log)
    }

    /// Where in the mapping the header is.
    #[inline]
    fn start(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.at * HEADER)
    }

    #[inline]
    fn counter(&self, index: usize) -> &AtomicU64 {
        assert!(index < HEADER / 8, "a counter beyond the header");
        // SAFETY: `start()` is a multiple of the header's size, and a header lies there in the
        // mapping, which `self` keeps alive: 32 aligned u64. Others use them as atomics as well.
        unsafe { AtomicU64::from_ptr(self.mapping.base.add(self.start()).cast::<u64>().add(index)) }
    }

    /// A word of the first header.
    fn everyones(&self, index: usize) -> &AtomicU64 {
        assert!(index < HEADER / 8, "a counter beyond the header");
        // SAFETY: as above; every mapping begins with a header.
        unsafe { AtomicU64::from_ptr(self.mapping.base.cast::<u64>().add(index)) }
    }

    fn slot(&self, index: u64) -> *mut [u8; Record::SIZE] {
        assert!(index < u64::from(self.capacity), "a record beyond the memory");
        let at = self.start() + HEADER + index as usize * Record::SIZE;
        // SAFETY: `index` is below the capacity, so the slot lies within the mapping.
        unsafe { self.mapping.base.add(at).cast() }
    }

    fn store(&mut self, index: u64, record: &Record) {
        // SAFETY: the slot is valid, and `&mut self` makes this the only writer in this process;
        // the coordinator reads only slots that the counter below has published.
        unsafe { self.slot(index).write_volatile(record.to_bytes()) }
    }

    /// Everything that was recorded.
    pub fn records(&self) -> Vec<Record> {
        self.records_from(0)
    }

    /// What was recorded after so many records.
    pub fn records_from(&self, first: usize) -> Vec<Record> {
        (first as u64..self.recorded()).map(|index| self.record(index)).collect()
    }

    /// How many records there are.
    fn recorded(&self) -> u64 {
        self.counter(RECORDED).load(Ordering::Acquire).min(u64::from(self.capacity))
    }

    fn record(&self, index: u64) -> Record {
        // SAFETY: the slot is valid; any pattern of bits is a record, torn or not.
        Record::from_bytes(&unsafe { self.slot(index).read_volatile() })
    }

    /// Where a talker's record of a message is: each has the number after that of the one before,
    /// unless a frame was not taken.
    fn index_of(&self, sequence: u64) -> Option<u64> {
        let last = self.recorded().checked_sub(1)?;
        let back = self.record(last).sequence.checked_sub(sequence)?;
        let nearest = last.saturating_sub(back);
        (nearest..=last).take(NOT_TAKEN).find(|index| self.record(*index).sequence == sequence)
    }

    /// What was recorded last.
    pub fn last(&self) -> Option<Record> {
        self.recorded().checked_sub(1).map(|last| self.record(last))
    }

    /// What has been counted up to now.
    pub fn counters(&self) -> Counters {
        Counters::from_words(|index| self.counter(index).load(Ordering::Acquire))
    }

    /// Where the last message of another talker came from, if one did.
    pub fn last_other_talker(&self) -> Option<Source> {
        other_talker(|index| self.counter(index).load(Ordering::Acquire))
    }

    /// Says whose memory this is.
    pub fn introduce(&mut self, identity: &Identity) {
        self.counter(STREAM_ID).store(identity.stream_id.0, Ordering::Relaxed);
        self.counter(ROLE).store(u64::from(identity.role == Role::Listener), Ordering::Relaxed);
        let mut name = [0; CHANNEL_OCTETS];
        for (octet, of_name) in name.iter_mut().zip(identity.channel.bytes()) {
            *octet = of_name;
        }
        for (at, word) in name.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            self.counter(CHANNEL + at).store(word, Ordering::Release);
        }
    }

    /// Says what the channel's declared interval is. Latencies are known from then on.
    pub fn declare(&mut self, interval: Span) {
        let ns = u64::try_from(interval.as_ns()).unwrap_or_default();
        self.counter(INTERVAL).store(ns, Ordering::Release);
    }

    /// Whose memory this is.
    pub fn identity(&self) -> Identity {
        Identity::from_words(|index| self.counter(index).load(Ordering::Acquire))
    }

    #[inline]
    fn is_talker(&self) -> bool {
        self.counter(ROLE).load(Ordering::Relaxed) == 0
    }

    /// There is one writer, so no read-modify-write is needed: a load and a store cost nothing.
    #[inline]
    fn add(&self, index: usize, more: u64) {
        let counter = self.counter(index);
        let before = counter.load(Ordering::Relaxed);
        counter.store(before.wrapping_add(more), Ordering::Release);
    }

    /// Counts the latency of a message that is about to be counted as received.
    #[inline]
    fn count_latency(&self, latency_ns: i64) {
        self.add(LATENCY_SUM, latency_ns.cast_unsigned());
        let worst = self.counter(LATENCY_WORST);
        let is_first = self.counter(RECEIVED).load(Ordering::Relaxed) == 0;
        if is_first || latency_ns > worst.load(Ordering::Relaxed).cast_signed() {
            worst.store(latency_ns.cast_unsigned(), Ordering::Release);
        }
    }

    #[inline]
    fn count(&self, record: &Record) {
        if self.is_talker() {
            self.add(SENT, 1);
        } else if record.flags & flag::DUPLICATE != 0 {
            self.add(DUPLICATE, 1);
        } else {
            if let (Some(receive), Some(capture)) = (record.receive, record.capture) {
                self.count_latency((receive - capture).as_ns());
            }
            self.add(RECEIVED, 1);
            self.add(LOST, u64::from(record.gap));
            self.add(LATE, u64::from(record.flags & flag::LATE != 0));
            if record.flags & flag::EXPIRED != 0 {
                self.add(ROLE, AN_EXPIRED);
            }
        }
    }
}

impl SharedLog {
    /// Counts a record that found no room elsewhere.
    pub(crate) fn unrecorded(&mut self) {
        self.add(UNRECORDED, 1);
    }

    /// Counts a message whose latency was too long.
    pub(crate) fn broke(&mut self) {
        self.add(BREAKS, 1);
    }
}

impl Drop for SharedLog {
    fn drop(&mut self) {
        // An end that is gone is not to be shown any more.
        if self.place.as_ref().is_some_and(|place| place.owner == crate::fork::process()) {
            self.counter(CHANNEL).store(0, Ordering::Release);
        }
    }
}

impl Log for SharedLog {
    /// Adds a record; where none are kept, it is counted and gone.
    #[inline]
    fn push(&mut self, record: &Record) {
        self.count(record);
        if self.capacity == 0 {
            return;
        }
        let written = self.counter(RECORDED).load(Ordering::Relaxed);
        if written >= u64::from(self.capacity) {
            self.add(UNRECORDED, 1);
            return;
        }
        self.store(written, record);
        self.counter(RECORDED).store(written + 1, Ordering::Release);
    }

    fn amend(&mut self, record: &Record) {
        let written = self.counter(RECORDED).load(Ordering::Relaxed);
        // When the memory is full the last record pushed is not the last one in it.
        if written > 0 && self.counter(UNRECORDED).load(Ordering::Relaxed) == 0 {
            self.store(written.min(u64::from(self.capacity)) - 1, record);
        }
    }

    fn transmitted(&mut self, stamp: &TransmitStamp) {
        let Some(index) = self.index_of(stamp.sequence) else { return };
        let mut record = self.record(index);
        let place = match stamp.point {
            TransmitPoint::Queue => &mut record.receive,
            TransmitPoint::Interface => &mut record.transfer,
        };
        // Of a frame that is sent by two ways the first one counts.
        if place.is_none() {
            *place = Some(stamp.at);
            self.store(index, &record);
        }
    }

    fn reject(&mut self, reason: Reason, count: u64) {
        self.add(REJECTED + reason as usize, count);
    }

    fn other_talker(&mut self, from: &Source) {
        for (at, word) in from.to_bytes().as_chunks::<8>().0.iter().enumerate() {
            self.counter(OTHER_TALKER + at).store(u64::from_le_bytes(*word), Ordering::Release);
        }
    }

    fn rate_exceeded(&mut self) {
        self.add(RATE_EXCEEDED, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sequence: u64) -> Record {
        Record { sequence, ..Record::default() }
    }

    #[test]
    fn what_one_side_records_the_other_collects_up_to_the_capacity() {
        let memory = create(3).expect("memory");
        let mut program = SharedLog::map(&memory, 3).expect("a mapping");
        let run = SharedLog::map(&memory, 3).expect("a mapping");
        for sequence in 0..5 {
            program.push(&record(sequence));
            program.amend(&Record { flags: 1, ..record(sequence) });
        }
        program.reject(Reason::Size, 1);
        program.reject(Reason::Future, 3);
        let from = Source::Station(onbeat_model::units::MacAddress([2, 0, 0, 0, 0, 7]));
        program.other_talker(&from);
        drop(program);
        let expected: Vec<Record> = (0..3).map(|s| Record { flags: 1, ..record(s) }).collect();
        assert_eq!(run.records(), expected);
        let rejected = [0, 0, 1, 0, 3, 0, 0, 0, 0, 0];
        assert_eq!(run.last_other_talker(), Some(from));
        let counters = Counters { sent: 5, unrecorded: 2, rejected, ..Counters::default() };
        assert_eq!(run.counters(), counters);
    }

    #[test]
    fn an_end_stays_on_its_board_when_a_forked_child_drops_its_copy() {
        let board = Board::new().expect("a board");
        let mut end = board.end().expect("an end");
        let (channel, stream_id) = ("c".to_owned(), onbeat_model::units::StreamId(9));
        let identity = Identity { channel, stream_id, role: Role::Listener };
        end.introduce(&identity);
        // SAFETY: the child only drops its copy, which allocates nothing, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(end);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        let mut status = -1;
        // SAFETY: `status` is valid for writing.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((status, end.identity()), (0, identity));
    }

    #[test]
    fn memory_smaller_than_the_capacity_is_refused() {
        let memory = create(3).expect("memory");
        assert!(SharedLog::map(&memory, 4).is_err());
    }

    #[test]
    fn a_counter_that_lies_does_not_lead_out_of_the_memory() {
        let memory = create(2).expect("memory");
        let log = SharedLog::map(&memory, 2).expect("a mapping");
        log.counter(RECORDED).store(u64::MAX, Ordering::Release);
        assert_eq!(log.records().len(), 2);
    }

    #[test]
    fn latencies_add_up_and_the_largest_is_kept_also_where_all_are_negative() {
        let memory = create(0).expect("memory");
        let mut log = SharedLog::map(&memory, 0).expect("a mapping");
        let (channel, stream_id) = ("c".to_owned(), StreamId(9));
        log.introduce(&Identity { channel, stream_id, role: Role::Listener });
        log.declare(Span::from_ms(20));
        let at = |ns| Some(onbeat_model::time::SyncedTime::from_ns(ns));
        let mut push = |latency: i64, flags| {
            let (capture, receive) = (at(1_000_000), at(1_000_000 + latency));
            log.push(&Record { capture, receive, flags, ..Record::default() });
            let counters = log.counters();
            (counters.latency_sum_ns, counters.latency_worst_ns)
        };
        assert_eq!(push(-700, 0), (-700, -700));
        assert_eq!(push(-900, 0), (-1_600, -700));
        assert_eq!(push(5_000, flag::DUPLICATE), (-1_600, -700), "a copy has none");
        assert_eq!(push(2_000, flag::LATE), (400, 2_000));
        let mut octets = [0; HEADER];
        let file = std::fs::File::from(memory);
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut octets, 0).expect("a header");
        assert_eq!(Header::new(octets).interval(), Some(Span::from_ms(20)));
        assert_eq!(Header::new([0; HEADER]).interval(), None, "an older library's");
        assert_eq!(Header::new([0xff; HEADER]).interval(), None, "no interval at all");
    }

    #[test]
    fn a_listeners_counts_tell_what_became_of_each_message() {
        let memory = create(0).expect("memory");
        let mut log = SharedLog::map(&memory, 0).expect("a mapping");
        let identity = Identity {
            channel: "joint_targets".to_owned(),
            stream_id: StreamId(42),
            role: Role::Listener,
        };
        log.introduce(&identity);
        assert_eq!(log.identity(), identity);
        log.push(&Record { gap: 3, flags: flag::LATE, ..record(3) });
        log.push(&Record { flags: flag::DUPLICATE, ..record(3) });
        let got = log.counters();
        assert_eq!((got.received, got.lost, got.late, got.duplicate), (1, 3, 1, 1));
        assert_eq!((got.sent, got.unrecorded), (0, 0), "no records are kept");
    }
}
