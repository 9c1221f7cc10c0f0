//! The program in the kernel that gives a stream's frames to its reader, its tables, and the
//! bpf() calls that it takes. Frames of the stream that are not as they should be are counted and
//! left to the kernel: they take no room of those that are.
//!
//! The program is assembled here, so that building needs no C compiler for eBPF and no library.
//! The kernel takes it off the interface when the last descriptor of its attachment goes: a process
//! that is killed leaves nothing behind.

use super::ring::Mapping;
use crate::fork;
use onbeat_runtime::port::Reason;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{ETHERTYPE_AVTP, ETHERTYPE_VLAN, STREAM_HEADER, SUBTYPE_EF_STREAM};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Commands of bpf(), of linux/bpf.h.
const MAP_CREATE: i64 = 0;
const MAP_UPDATE: i64 = 2;
const MAP_DELETE: i64 = 3;
const PROG_LOAD: i64 = 5;
const LINK_CREATE: i64 = 28;
const LINK_DETACH: i64 = 34;

const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
/// Entries take memory when they are made.
const MAP_NO_PREALLOC: u32 = 1;
/// The process reads the entries in its memory.
const MAP_MEMORY: u32 = 1 << 10;
/// An update makes a new entry, or fails.
const MAP_NO_EXIST: u64 = 1;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const XDP_GENERIC: u32 = 1 << 1;
const XDP_NATIVE: u32 = 1 << 2;

/// Which frames are a stream's: as they have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Key {
    stream_id: [u8; 8],
    destination: [u8; 6],
    unused: [u8; 2],
}

impl Key {
    pub(super) fn of(channel: &ChannelParameters) -> Self {
        Self {
            stream_id: channel.stream_id.0.to_be_bytes(),
            destination: channel.destination.0,
            unused: [0; 2],
        }
    }
}

/// Where they go, which VLAN they must be in if they are tagged, and the octets of their message.
#[derive(Debug)]
#[repr(C)]
struct Reader {
    slot: u32,
    vlan: u32,
    size: u32,
}

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
struct Line {
    label: &'static str,
    code: u8,
    to: u8,
    from: u8,
    offset: i16,
    value: i32,
    jump: &'static str,
}

const LOAD_8: u8 = 0x71;
const LOAD_16: u8 = 0x69;
const LOAD_32: u8 = 0x61;
const STORE_16: u8 = 0x6b;
const STORE_32: u8 = 0x63;
const STORE_VALUE_16: u8 = 0x6a;
const COPY: u8 = 0xbf;
const SET: u8 = 0xb7;
const SET_64: u8 = 0x18;
const ADD: u8 = 0x07;
const ADD_REGISTER: u8 = 0x0f;
const AND: u8 = 0x57;
const FROM_BIG_ENDIAN: u8 = 0xdc;
const GO: u8 = 0x05;
const IF_EQUAL: u8 = 0x15;
const UNLESS_EQUAL: u8 = 0x55;
const IF_MORE_THAN_REGISTER: u8 = 0x2d;
const UNLESS_EQUAL_REGISTER: u8 = 0x5d;
const CALL: u8 = 0x85;
/// Adds to memory, which others may do at the same time.
const ADD_TO: u8 = 0xdb;
const RETURN: u8 = 0x95;
/// What [`SET_64`] has in place of a register, so that the value is a map's descriptor.
const MAP: u8 = 1;
const MAP_LOOKUP: i32 = 1;
const REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
/// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE: i16 = 16;
/// Where in the stack the key is.
const KEY: i16 = -(size_of::<Key>() as i16);
const VID: i32 = 0x0fff;
/// No message is longer; the kernel checks programs and wants to see a limit.
const SIZE: i32 = 0x07ff;
/// `sv`, `version` and `tv` of the second octet of a data unit, and what they must be.
const FLAGS: i32 = 0xf1;
const FLAGS_SET: i32 = 0x81;

fn load(code: u8, to: u8, from: u8, offset: i16) -> Line {
    Line { code, to, from, offset, ..Line::default() }
}

fn with(code: u8, to: u8, value: i32) -> Line {
    Line { code, to, value, ..Line::default() }
}

fn copy(to: u8, from: u8) -> Line {
    Line { code: COPY, to, from, ..Line::default() }
}

fn go(code: u8, to: u8, value: i32, jump: &'static str) -> Line {
    Line { code, to, value, jump, ..Line::default() }
}

fn compare(code: u8, to: u8, from: u8, jump: &'static str) -> Line {
    Line { code, to, from, jump, ..Line::default() }
}

fn at(label: &'static str, line: Line) -> Line {
    Line { label, ..line }
}

/// The program's first part: leaves with the VLAN or 0 in r7, the data unit's place in r8 and the
/// frame's end in r9.
fn find_unit() -> Vec<Line> {
    // Compared as they are in the frame.
    let avtp = i32::from(ETHERTYPE_AVTP.to_be());
    let vlan = i32::from(ETHERTYPE_VLAN.to_be());
    vec![
        copy(6, 1),
        load(LOAD_32, 2, 6, DATA),
        load(LOAD_32, 9, 6, DATA_END),
        // A frame without a tag, up to the stream's identifier.
        copy(4, 2),
        with(ADD, 4, 26),
        compare(IF_MORE_THAN_REGISTER, 4, 9, "pass"),
        load(LOAD_16, 5, 2, 12),
        with(SET, 7, 0),
        copy(8, 2),
        with(ADD, 8, 14),
        go(IF_EQUAL, 5, avtp, "unit"),
        go(UNLESS_EQUAL, 5, vlan, "pass"),
        // The same with a tag.
        copy(4, 2),
        with(ADD, 4, 30),
        compare(IF_MORE_THAN_REGISTER, 4, 9, "pass"),
        load(LOAD_16, 5, 2, 16),
        go(UNLESS_EQUAL, 5, avtp, "pass"),
        load(LOAD_16, 7, 2, 14),
        with(FROM_BIG_ENDIAN, 7, 16),
        with(AND, 7, VID),
        copy(8, 2),
        with(ADD, 8, 18),
    ]
}

/// The two lines that put a table into a register.
fn map(to: u8, value: RawFd) -> [Line; 2] {
    [Line { value, ..load(SET_64, to, MAP, 0) }, Line::default()]
}

/// The second part: from the stream's identifier and the destination to the reader, in r7.
fn find_reader(streams: RawFd, queue: u32) -> Vec<Line> {
    let mut lines = vec![
        at("unit", load(LOAD_8, 5, 8, 0)),
        go(UNLESS_EQUAL, 5, i32::from(SUBTYPE_EF_STREAM), "pass"),
    ];
    for part in [0, 4] {
        lines.push(load(LOAD_32, 5, 8, 4 + part));
        lines.push(load(STORE_32, 10, 5, KEY + part));
    }
    for part in [0, 2, 4] {
        lines.push(load(LOAD_16, 5, 2, part));
        lines.push(load(STORE_16, 10, 5, KEY + 8 + part));
    }
    lines.push(load(STORE_VALUE_16, 10, 0, KEY + 14));
    lines.extend(map(1, streams));
    lines.extend([
        copy(2, 10),
        with(ADD, 2, i32::from(KEY)),
        with(CALL, 0, MAP_LOOKUP),
        go(IF_EQUAL, 0, 0, "pass"),
        // No tag, or one with a priority only.
        go(IF_EQUAL, 7, 0, "queue"),
        load(LOAD_32, 1, 0, 4),
        compare(UNLESS_EQUAL_REGISTER, 7, 1, "pass"),
        // A socket takes frames of its queue only; the kernel would drop others.
        at("queue", load(LOAD_32, 1, 6, RX_QUEUE)),
        go(UNLESS_EQUAL, 1, queue as i32, "pass"),
        copy(7, 0),
    ]);
    lines
}

/// What the program drops, in the order of its counters.
const DROPPED: [Reason; 2] = [Reason::Shape, Reason::Size];

/// The third part: whether the data unit is as the reader expects it; then to its socket.
fn hand_over(sockets: RawFd) -> Vec<Line> {
    let header = STREAM_HEADER as i32;
    let mut lines = vec![
        copy(2, 8),
        with(ADD, 2, header),
        compare(IF_MORE_THAN_REGISTER, 2, 9, "shape"),
        load(LOAD_8, 1, 8, 1),
        with(AND, 1, FLAGS),
        go(UNLESS_EQUAL, 1, FLAGS_SET, "shape"),
        load(LOAD_16, 1, 8, 20),
        with(FROM_BIG_ENDIAN, 1, 16),
        load(LOAD_32, 2, 7, 8),
        compare(UNLESS_EQUAL_REGISTER, 1, 2, "size"),
        with(AND, 2, SIZE),
        copy(3, 8),
        compare(ADD_REGISTER, 3, 2, ""),
        with(ADD, 3, header),
        compare(IF_MORE_THAN_REGISTER, 3, 9, "shape"),
        load(LOAD_32, 2, 7, 0),
    ];
    lines.extend(map(1, sockets));
    lines.extend([
        // What to do when there is no socket.
        with(SET, 3, XDP_PASS),
        with(CALL, 0, REDIRECT_MAP),
        go(GO, 0, 0, "end"),
    ]);
    lines
}

/// The last part: counts what is not, and leaves it to the kernel.
fn count(counters: RawFd) -> Vec<Line> {
    let mut lines = vec![
        at("shape", with(SET, 9, 0)),
        go(GO, 0, 0, "count"),
        at("size", with(SET, 9, 1)),
        // Each reader has two counters.
        at("count", load(LOAD_32, 1, 7, 0)),
        compare(ADD_REGISTER, 1, 1, ""),
        compare(ADD_REGISTER, 1, 9, ""),
        load(STORE_32, 10, 1, KEY),
    ];
    lines.extend(map(1, counters));
    lines.extend([
        copy(2, 10),
        with(ADD, 2, i32::from(KEY)),
        with(CALL, 0, MAP_LOOKUP),
        go(IF_EQUAL, 0, 0, "pass"),
        with(SET, 1, 1),
        load(ADD_TO, 0, 1, 0),
        at("pass", with(SET, 0, XDP_PASS)),
        at("end", with(RETURN, 0, 0)),
    ]);
    lines
}

fn assemble(lines: &[Line]) -> Vec<Instruction> {
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
struct Map<K, V> {
    fd: OwnedFd,
    types: std::marker::PhantomData<fn(K, V)>,
}

impl<K, V> Map<K, V> {
    fn new(kind: u32, entries: u32, flags: u32) -> io::Result<Self> {
        let attributes = [kind, size_of::<K>() as u32, size_of::<V>() as u32, entries, flags];
        Ok(Self { fd: make(MAP_CREATE, &attributes)?, types: std::marker::PhantomData })
    }

    fn insert(&self, key: &K, value: &V) -> io::Result<()> {
        let (key, value): (*const K, *const V) = (key, value);
        let fd = self.fd.as_raw_fd() as u64;
        // One 32-bit descriptor, padding, then 64-bit fields: on a big-endian machine the
        // descriptor is in the upper half.
        let fd = if cfg!(target_endian = "little") { fd } else { fd << 32 };
        bpf(MAP_UPDATE, &[fd, key as u64, value as u64, MAP_NO_EXIST]).map(drop)
    }

    fn remove(&self, key: &K) {
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

/// The program and its tables.
#[derive(Debug)]
pub(super) struct Program {
    streams: Map<Key, Reader>,
    sockets: Map<u32, u32>,
    /// What was dropped, per reader and [`DROPPED`]; it is there as long as the mapping.
    counters: Mapping,
    program: OwnedFd,
}

impl Program {
    /// Loads it for frames that come in at `queue` and up to `readers` readers.
    pub(super) fn new(queue: u32, readers: u32) -> io::Result<Self> {
        let streams = Map::<Key, Reader>::new(MAP_TYPE_HASH, readers, MAP_NO_PREALLOC)?;
        let sockets = Map::<u32, u32>::new(MAP_TYPE_XSKMAP, readers, 0)?;
        let entries = readers * DROPPED.len() as u32;
        let counted = Map::<u32, u64>::new(MAP_TYPE_ARRAY, entries, MAP_MEMORY)?;
        let length = entries as usize * size_of::<u64>();
        let counters = Mapping::shared(counted.fd.as_fd(), length, 0)?;
        let mut lines = find_unit();
        lines.extend(find_reader(streams.fd.as_raw_fd(), queue));
        lines.extend(hand_over(sockets.fd.as_raw_fd()));
        lines.extend(count(counted.fd.as_raw_fd()));
        let code = assemble(&lines);
        let mut name = [0; 16];
        name[..6].copy_from_slice(b"onbeat");
        let attributes = Load {
            kind: PROG_TYPE_XDP,
            count: code.len() as u32,
            instructions: code.as_ptr() as u64,
            license: c"Apache-2.0 OR MIT".as_ptr() as u64,
            log: [0; 4],
            kernel: 0,
            flags: 0,
            name,
            interface: 0,
            attach: ATTACH_XDP,
        };
        let program = make(PROG_LOAD, &attributes)?;
        Ok(Self { streams, sockets, counters, program })
    }

    /// How many frames of a reader's stream were dropped for `reason` so far. Real-time: a load.
    #[inline]
    pub(super) fn dropped(&self, slot: u32, reason: Reason) -> u64 {
        let Some(at) = DROPPED.iter().position(|dropped| *dropped == reason) else { return 0 };
        let index = u64::from(slot) * DROPPED.len() as u64 + at as u64;
        let size = size_of::<u64>();
        let counter = self.counters.at(index * size as u64, size).cast();
        // SAFETY: the place is within the mapping and aligned; the kernel adds to it atomically.
        unsafe { AtomicU64::from_ptr(counter.as_ptr()) }.load(Ordering::Relaxed)
    }

    /// Attaches it to an interface.
    pub(super) fn attach(&self, interface: u32, native: bool) -> io::Result<Attachment> {
        let mode = if native { XDP_NATIVE } else { XDP_GENERIC };
        let program = self.program.as_raw_fd() as u32;
        let link = make(LINK_CREATE, &[program, interface, ATTACH_XDP, mode])?;
        Ok(Attachment { link, process: fork::process() })
    }

    /// Lets a channel's frames go to `socket` from now on. Fails with `AlreadyExists` when they go
    /// to another one.
    pub(super) fn add(
        &self,
        slot: u32,
        socket: BorrowedFd<'_>,
        channel: &ChannelParameters,
    ) -> io::Result<()> {
        self.sockets.insert(&slot, &(socket.as_raw_fd() as u32))?;
        let (vlan, size) = (u32::from(channel.vlan), channel.size.get());
        let reader = Reader { slot, vlan, size };
        let added = self.streams.insert(&Key::of(channel), &reader);
        if added.is_err() {
            self.sockets.remove(&slot);
        }
        added
    }

    /// Lets its frames pass to the kernel again. When this returns, none is on its way any more.
    pub(super) fn remove(&self, slot: u32, key: &Key) {
        self.streams.remove(key);
        self.sockets.remove(&slot);
        // Programs run in read-side sections of RCU, and this waits for their end. A kernel with
        // isolated processors refuses; then a frame may still come, and its chunk is not used
        // again before the process ends.
        let _ = rustix::thread::membarrier(rustix::thread::MembarrierCommand::Global);
    }
}

/// A program on an interface. The kernel takes it off when the descriptor goes, however that is.
#[derive(Debug)]
pub(super) struct Attachment {
    link: OwnedFd,
    process: u32,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // A child between fork and exec still has the descriptor; one that stays has no say.
        if self.process == fork::process() {
            let _ = bpf(LINK_DETACH, &[self.link.as_raw_fd() as u32]);
        }
    }
}
