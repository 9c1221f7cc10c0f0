//! Small programs that the kernel runs on frames, their tables, and the bpf() calls that it takes.
//!
//! They are assembled here, so that building needs no C compiler for eBPF and no library. The
//! kernel takes a program away when the last descriptor of it or of its attachment goes: a process
//! that is killed leaves nothing behind.

#![allow(missing_docs)] // names of linux/bpf.h, and instructions by what they do

use crate::fork;
use crate::mapping::Mapping;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Commands of bpf(), of linux/bpf.h.
const MAP_CREATE: i64 = 0;
const MAP_UPDATE: i64 = 2;
const MAP_DELETE: i64 = 3;
const PROG_LOAD: i64 = 5;
const LINK_CREATE: i64 = 28;
const LINK_DETACH: i64 = 34;

pub const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY: u32 = 2;
pub const MAP_TYPE_XSKMAP: u32 = 17;
/// Entries take memory when they are made.
pub const MAP_NO_PREALLOC: u32 = 1;
/// The process reads the entries in its memory.
const MAP_MEMORY: u32 = 1 << 10;
/// An update makes a new entry, or fails.
const MAP_NO_EXIST: u64 = 1;
pub const PROG_TYPE_XDP: u32 = 6;
pub const ATTACH_XDP: u32 = 37;
pub const XDP_GENERIC: u32 = 1 << 1;
pub const XDP_NATIVE: u32 = 1 << 2;
pub const PROG_TYPE_SOCKET_FILTER: u32 = 1;
pub const PROG_TYPE_SCHED_CLS: u32 = 3;
pub const ATTACH_TCX_INGRESS: u32 = 46;
pub const ATTACH_TCX_EGRESS: u32 = 47;

/// One instruction, `struct bpf_insn`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// An instruction with names for where it is and where it jumps to; empty: nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabelledInstruction {
    pub label: &'static str,
    pub code: u8,
    pub to: u8,
    pub from: u8,
    pub offset: i16,
    pub value: i32,
    pub jump: &'static str,
}

/// Loads from the frame, which must be that long, into r0; r6 is the context.
pub const FRAME_32: u8 = 0x20;
pub const FRAME_16: u8 = 0x28;
/// The same from as far behind the place as a register says.
pub const FRAME_32_BEHIND: u8 = 0x40;
pub const FRAME_16_BEHIND: u8 = 0x48;
pub const STORE_64: u8 = 0x7b;
pub const STORE_VALUE_64: u8 = 0x7a;
pub const UNLESS_EQUAL_32: u8 = 0x56;
pub const IF_LESS: u8 = 0xa5;
pub const IF_LESS_32: u8 = 0xa6;
pub const IF_LESS_THAN_REGISTER: u8 = 0xad;
pub const UNLESS_LESS_THAN_REGISTER: u8 = 0x3d;
pub const LOAD_8: u8 = 0x71;
pub const LOAD_16: u8 = 0x69;
pub const LOAD_32: u8 = 0x61;
pub const STORE_16: u8 = 0x6b;
pub const STORE_32: u8 = 0x63;
pub const STORE_VALUE_16: u8 = 0x6a;
pub const COPY: u8 = 0xbf;
pub const SET: u8 = 0xb7;
pub const SET_64: u8 = 0x18;
pub const ADD: u8 = 0x07;
pub const ADD_REGISTER: u8 = 0x0f;
pub const SUBTRACT_REGISTER: u8 = 0x1f;
pub const AND: u8 = 0x57;
pub const FROM_BIG_ENDIAN: u8 = 0xdc;
pub const GO: u8 = 0x05;
pub const IF_EQUAL: u8 = 0x15;
pub const UNLESS_EQUAL: u8 = 0x55;
pub const IF_MORE_THAN_REGISTER: u8 = 0x2d;
pub const UNLESS_EQUAL_REGISTER: u8 = 0x5d;
pub const CALL: u8 = 0x85;
/// Adds to memory, which others may do at the same time.
pub const ADD_TO: u8 = 0xdb;
pub const RETURN: u8 = 0x95;
/// What [`SET_64`] has in place of a register, so that the value is a map's descriptor.
pub const MAP: u8 = 1;
/// Helpers of linux/bpf.h.
pub const MAP_LOOKUP: i32 = 1;
pub const MONOTONIC_NOW: i32 = 5;
pub const RANDOM: i32 = 7;

pub fn load(code: u8, to: u8, from: u8, offset: i16) -> LabelledInstruction {
    LabelledInstruction { code, to, from, offset, ..LabelledInstruction::default() }
}

pub fn with(code: u8, to: u8, value: i32) -> LabelledInstruction {
    LabelledInstruction { code, to, value, ..LabelledInstruction::default() }
}

pub fn copy(to: u8, from: u8) -> LabelledInstruction {
    LabelledInstruction { code: COPY, to, from, ..LabelledInstruction::default() }
}

pub fn go(code: u8, to: u8, value: i32, jump: &'static str) -> LabelledInstruction {
    LabelledInstruction { code, to, value, jump, ..LabelledInstruction::default() }
}

pub fn compare(code: u8, to: u8, from: u8, jump: &'static str) -> LabelledInstruction {
    LabelledInstruction { code, to, from, jump, ..LabelledInstruction::default() }
}

pub fn at(label: &'static str, line: LabelledInstruction) -> LabelledInstruction {
    LabelledInstruction { label, ..line }
}

/// The two lines that put a number into a register.
pub fn set_64(to: u8, value: u64) -> [LabelledInstruction; 2] {
    let (low, high) = (value as i32, (value >> 32) as i32);
    [
        LabelledInstruction { value: low, ..load(SET_64, to, 0, 0) },
        LabelledInstruction { value: high, ..LabelledInstruction::default() },
    ]
}

/// The two lines that put a table into a register.
pub fn map(to: u8, value: RawFd) -> [LabelledInstruction; 2] {
    [LabelledInstruction { value, ..load(SET_64, to, MAP, 0) }, LabelledInstruction::default()]
}

fn assemble(lines: &[LabelledInstruction]) -> Vec<Instruction> {
    let place = |label| lines.iter().position(|line| line.label == label);
    let assembled = lines.iter().enumerate().map(|(here, line)| {
        let jump = match line.jump {
            "" => line.offset,
            label => place(label).map_or(0, |there| there as i16 - here as i16 - 1),
        };
        let registers = if cfg!(target_endian = "little") {
            line.from << 4 | line.to
        } else {
            line.to << 4 | line.from
        };
        Instruction { code: line.code, registers, offset: jump, value: line.value }
    });
    assembled.collect()
}

/// One bpf() call that makes a descriptor or gives 0.
fn bpf<T>(command: i64, attributes: &T) -> io::Result<RawFd> {
    let attributes: *const T = attributes;
    // SAFETY: the kernel reads `size_of::<T>()` octets of attributes and takes those that are
    // missing for zeros; the pointers among them are valid, as those who make them say.
    let got = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got as RawFd) }
}

fn make<T>(command: i64, attributes: &T) -> io::Result<OwnedFd> {
    let fd = bpf(command, attributes)?;
    // SAFETY: the commands that are used with this function return a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A table in the kernel with keys `K` and values `V`.
#[derive(Debug)]
pub struct Map<K, V> {
    pub fd: OwnedFd,
    types: std::marker::PhantomData<fn(K, V)>,
}

impl<K, V> Map<K, V> {
    /// An empty one.
    pub fn new(kind: u32, entries: u32, flags: u32) -> io::Result<Self> {
        let attributes = [kind, size_of::<K>() as u32, size_of::<V>() as u32, entries, flags];
        Ok(Self { fd: make(MAP_CREATE, &attributes)?, types: std::marker::PhantomData })
    }

    /// Adds an entry; fails when there is one with this key.
    pub fn insert(&self, key: &K, value: &V) -> io::Result<()> {
        let (key, value): (*const K, *const V) = (key, value);
        let fd = self.fd.as_raw_fd() as u64;
        // One 32-bit descriptor, padding, then 64-bit fields: on a big-endian machine the
        // descriptor is in the upper half.
        let fd = if cfg!(target_endian = "little") { fd } else { fd << 32 };
        bpf(MAP_UPDATE, &[fd, key as u64, value as u64, MAP_NO_EXIST]).map(drop)
    }

    /// Takes an entry out.
    pub fn remove(&self, key: &K) {
        let key: *const K = key;
        let fd = self.fd.as_raw_fd() as u64;
        let fd = if cfg!(target_endian = "little") { fd } else { fd << 32 };
        // The one way to fail is that there is no such entry.
        let _ = bpf(MAP_DELETE, &[fd, key as u64]);
    }
}

/// `BPF_PROG_LOAD`'s attributes as far as they are needed.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log: [u32; 4],
    kernel: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
}

/// Loads a program.
pub fn load_program(kind: u32, attach: u32, lines: &[LabelledInstruction]) -> io::Result<OwnedFd> {
    let code = assemble(lines);
    let mut name = [0; 16];
    name[..6].copy_from_slice(b"onbeat");
    let attributes = Load {
        kind,
        count: code.len() as u32,
        instructions: code.as_ptr() as u64,
        license: c"Apache-2.0 OR MIT".as_ptr() as u64,
        log: [0; 4],
        kernel: 0,
        flags: 0,
        name,
        interface: 0,
        attach,
    };
    make(PROG_LOAD, &attributes)
}

/// Numbers that a program adds to and this process reads.
#[derive(Debug)]
pub struct Counters(Mapping);

impl Counters {
    /// So many, all 0, and the table that a program finds them by; they are there as long as this.
    pub fn new(count: u32) -> io::Result<(Self, OwnedFd)> {
        let table = Map::<u32, u64>::new(MAP_TYPE_ARRAY, count, MAP_MEMORY)?;
        let length = count as usize * size_of::<u64>();
        Ok((Self(Mapping::shared(table.fd.as_fd(), length, 0)?), table.fd))
    }

    /// What one of them is. Real-time: a load.
    #[inline]
    pub fn get(&self, index: u32) -> u64 {
        let size = size_of::<u64>();
        let counter = self.0.at(u64::from(index) * size as u64, size).cast();
        // SAFETY: the place is within the mapping and aligned; the kernel adds to it atomically.
        unsafe { AtomicU64::from_ptr(counter.as_ptr()) }.load(Ordering::Relaxed)
    }
}

/// The lines that add 1 to the counter whose index is in r1. Leaves r6 to r9 as they are.
pub fn add_one(counters: RawFd) -> Vec<LabelledInstruction> {
    let mut lines = vec![load(STORE_32, 10, 1, -4)];
    lines.extend(map(1, counters));
    lines.extend([
        copy(2, 10),
        with(ADD, 2, -4),
        with(CALL, 0, MAP_LOOKUP),
        go(IF_EQUAL, 0, 0, "counted"),
        with(SET, 1, 1),
        load(ADD_TO, 0, 1, 0),
    ]);
    lines
}

/// A program on an interface of this thread's network namespace. The kernel takes it off when the
/// descriptor goes, however that is.
#[derive(Debug)]
pub struct Attachment {
    link: OwnedFd,
    process: u32,
}

impl Attachment {
    /// Attaches a program.
    pub fn new(program: &OwnedFd, interface: u32, kind: u32, how: u32) -> io::Result<Self> {
        let link = make(LINK_CREATE, &[program.as_raw_fd() as u32, interface, kind, how])?;
        Ok(Self { link, process: fork::process() })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // A child between fork and exec still has the descriptor; one that stays has no say.
        if self.process == fork::process() {
            let _ = bpf(LINK_DETACH, &[self.link.as_raw_fd() as u32]);
        }
    }
}
