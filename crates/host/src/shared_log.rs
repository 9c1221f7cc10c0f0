//! Record memory shared between a program and its fabric: what a program recorded survives it.
//!
//! Layout: a header of 64 octets (records written u64, records that found no room u64, malformed
//! frames u64, rest zero), then `capacity` records of 64 octets. One writer, the program; the
//! fabric reads it when the program has stopped. It trusts nothing that it reads there.

use onbeat_model::record::Record;
use onbeat_runtime::port::Log;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

const HEADER: usize = 64;
/// The most records that one end may keep: one gibioctet of them.
pub const MAX_CAPACITY: u32 = 1 << 24;

const WRITTEN: usize = 0;
const UNRECORDED: usize = 1;
const MALFORMED: usize = 2;

/// Makes the memory for `capacity` records.
pub fn create(capacity: u32) -> io::Result<OwnedFd> {
    let memory = rustix::fs::memfd_create(
        "onbeat-records",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    rustix::fs::ftruncate(&memory, size(capacity) as u64)?;
    // A program that shrank the memory would kill its fabric with SIGBUS.
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memory)
}

const fn size(capacity: u32) -> usize {
    HEADER + capacity as usize * Record::SIZE
}

/// The mapped memory.
#[derive(Debug)]
pub struct SharedLog {
    base: *mut u8,
    capacity: u32,
}

// SAFETY: the mapping belongs to the value, lives until it is dropped and is not tied to a thread;
// all access goes through `&mut self` or, for the counters, through atomics.
unsafe impl Send for SharedLog {}

impl SharedLog {
    /// Maps the memory and touches all of it, so that no later access faults.
    pub fn map(memory: impl AsFd, capacity: u32) -> io::Result<Self> {
        let held = rustix::fs::fstat(&memory)?.st_size;
        if capacity > MAX_CAPACITY || (held as u64) < size(capacity) as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases no Rust memory.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                size(capacity),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                memory,
                0,
            )?
        };
        Ok(Self { base: base.cast(), capacity })
    }

    fn counter(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the header holds eight aligned u64, mapped as long as `self` lives; the other
        // process only uses them as atomics as well.
        unsafe { AtomicU64::from_ptr(self.base.cast::<u64>().add(index)) }
    }

    fn slot(&self, index: u64) -> *mut [u8; Record::SIZE] {
        assert!(index < u64::from(self.capacity), "a record beyond the memory");
        // SAFETY: `index` is below the capacity, so the slot lies within the mapping.
        unsafe { self.base.add(HEADER + index as usize * Record::SIZE).cast() }
    }

    fn store(&mut self, index: u64, record: &Record) {
        // SAFETY: the slot is valid, and `&mut self` makes this the only writer in this process;
        // the fabric reads only slots that the counter below has published.
        unsafe { self.slot(index).write_volatile(record.to_bytes()) }
    }

    /// Everything that was recorded, and how many records found no room and frames were malformed.
    pub fn collect(&self) -> (Vec<Record>, u64, u64) {
        let written = self.counter(WRITTEN).load(Ordering::Acquire).min(u64::from(self.capacity));
        let records = (0..written).map(|index| {
            // SAFETY: the slot is valid; any pattern of bits is a record, torn or not.
            Record::from_bytes(&unsafe { self.slot(index).read_volatile() })
        });
        let unrecorded = self.counter(UNRECORDED).load(Ordering::Acquire);
        (records.collect(), unrecorded, self.counter(MALFORMED).load(Ordering::Acquire))
    }
}

impl Log for SharedLog {
    fn push(&mut self, record: &Record) {
        let written = self.counter(WRITTEN).load(Ordering::Relaxed);
        if written >= u64::from(self.capacity) {
            self.counter(UNRECORDED).fetch_add(1, Ordering::Release);
            return;
        }
        self.store(written, record);
        self.counter(WRITTEN).store(written + 1, Ordering::Release);
    }

    fn amend(&mut self, record: &Record) {
        let written = self.counter(WRITTEN).load(Ordering::Relaxed);
        // When the memory is full the last record pushed is not the last one in it.
        if written > 0 && self.counter(UNRECORDED).load(Ordering::Relaxed) == 0 {
            self.store(written.min(u64::from(self.capacity)) - 1, record);
        }
    }

    fn set_malformed(&mut self, count: u64) {
        self.counter(MALFORMED).store(count, Ordering::Release);
    }
}

impl Drop for SharedLog {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this size and nothing refers to it any more. A failure
        // to unmap could only leak it.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), size(self.capacity)) };
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
        let fabric = SharedLog::map(&memory, 3).expect("a mapping");
        for sequence in 0..5 {
            program.push(&record(sequence));
            program.amend(&Record { flags: 1, ..record(sequence) });
        }
        program.set_malformed(7);
        drop(program);
        let expected: Vec<Record> = (0..3).map(|s| Record { flags: 1, ..record(s) }).collect();
        assert_eq!(fabric.collect(), (expected, 2, 7));
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
        log.counter(WRITTEN).store(u64::MAX, Ordering::Release);
        assert_eq!(log.collect().0.len(), 2);
    }
}
