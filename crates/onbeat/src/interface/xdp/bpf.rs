//! The program in the kernel that gives a stream's frames to its reader, each with the instant at
//! which it came, and its tables. Frames of the stream that are not as they should be are counted
//! and left to the kernel: they take no room of those that are.

use super::ring::{STAMP, STAMP_MARK};
use crate::bpf::*;
use onbeat_runtime::channel_io::Reason;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{
    ETHERTYPE_AVTP, ETHERTYPE_R_TAG, ETHERTYPE_VLAN, R_TAG, STREAM_HEADER, SUBTYPE_EF_STREAM,
};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::io;

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

const REDIRECT_MAP: i32 = 51;
const MAKE_ROOM: i32 = 54;
const XDP_PASS: i32 = 2;
/// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const BEFORE_DATA: i16 = 8;
const RX_QUEUE: i16 = 16;
/// Where in the stack the key is.
const KEY: i16 = -(size_of::<Key>() as i16);
const VID: i32 = 0x0fff;
/// No message is longer; the kernel checks programs and wants to see a limit.
const SIZE: i32 = 0x07ff;
/// `sv`, `version` and `tv` of the second octet of a data unit, and what they must be.
const FLAGS: i32 = 0xf1;
const FLAGS_SET: i32 = 0x81;

/// The program's first part: leaves with the VLAN or 0 in r7, the data unit's place in r8 and the
/// frame's end in r9.
fn find_unit() -> Vec<LabelledInstruction> {
    // Compared as they are in the frame.
    let avtp = i32::from(ETHERTYPE_AVTP.to_be());
    let vlan = i32::from(ETHERTYPE_VLAN.to_be());
    let r_tag = i32::from(ETHERTYPE_R_TAG.to_be());
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
        go(IF_EQUAL, 5, r_tag, "redundancy tag"),
        go(UNLESS_EQUAL, 5, vlan, "pass"),
        // The same with a tag.
        copy(4, 2),
        with(ADD, 4, 30),
        compare(IF_MORE_THAN_REGISTER, 4, 9, "pass"),
        load(LOAD_16, 5, 2, 16),
        load(LOAD_16, 7, 2, 14),
        with(FROM_BIG_ENDIAN, 7, 16),
        with(AND, 7, VID),
        copy(8, 2),
        with(ADD, 8, 18),
        go(IF_EQUAL, 5, avtp, "unit"),
        go(UNLESS_EQUAL, 5, r_tag, "pass"),
        // The same behind a redundancy tag.
        at("redundancy tag", copy(4, 8)),
        with(ADD, 4, R_TAG as i32 + 12),
        compare(IF_MORE_THAN_REGISTER, 4, 9, "pass"),
        load(LOAD_16, 5, 8, R_TAG as i16 - 2),
        go(UNLESS_EQUAL, 5, avtp, "pass"),
        with(ADD, 8, R_TAG as i32),
    ]
}

/// The second part: from the stream's identifier and the destination to the reader, in r7.
fn find_reader(streams: RawFd, queue: u32) -> Vec<LabelledInstruction> {
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
fn hand_over(sockets: RawFd) -> Vec<LabelledInstruction> {
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
    ];
    lines.extend(stamp());
    lines.push(at("hand over", load(LOAD_32, 2, 7, 0)));
    lines.extend(map(1, sockets));
    lines.extend([
        // What to do when there is no socket.
        with(SET, 3, XDP_PASS),
        with(CALL, 0, REDIRECT_MAP),
        go(GO, 0, 0, "end"),
    ]);
    lines
}

/// Puts the time before the frame, where the driver has room for it. Frame and data unit are known
/// no more after it.
fn stamp() -> Vec<LabelledInstruction> {
    let room = STAMP as i32;
    vec![
        copy(1, 6),
        with(SET, 2, -room),
        with(CALL, 0, MAKE_ROOM),
        go(UNLESS_EQUAL, 0, 0, "hand over"),
        with(CALL, 0, MONOTONIC_NOW),
        load(LOAD_32, 2, 6, BEFORE_DATA),
        load(LOAD_32, 3, 6, DATA),
        copy(4, 2),
        with(ADD, 4, room),
        compare(IF_MORE_THAN_REGISTER, 4, 3, "hand over"),
        LabelledInstruction { value: STAMP_MARK as i32, ..load(STORE_VALUE_64, 2, 0, 0) },
        load(STORE_64, 2, 0, 8),
    ]
}

/// The last part: counts what is not, and leaves it to the kernel.
fn count(counters: RawFd) -> Vec<LabelledInstruction> {
    let mut lines = vec![
        at("shape", with(SET, 9, 0)),
        go(GO, 0, 0, "count"),
        at("size", with(SET, 9, 1)),
        // Each reader has two counters.
        at("count", load(LOAD_32, 1, 7, 0)),
        compare(ADD_REGISTER, 1, 1, ""),
        compare(ADD_REGISTER, 1, 9, ""),
    ];
    lines.extend(add_one(counters));
    lines.extend([
        at("counted", go(GO, 0, 0, "pass")),
        at("pass", with(SET, 0, XDP_PASS)),
        at("end", with(RETURN, 0, 0)),
    ]);
    lines
}

/// The program and its tables.
#[derive(Debug)]
pub(super) struct Program {
    streams: Map<Key, Reader>,
    sockets: Map<u32, u32>,
    /// What was dropped, per reader and [`DROPPED`]; it is there as long as the mapping.
    counters: Counters,
    program: OwnedFd,
}

impl Program {
    /// Loads it for frames that come in at `queue` and up to `readers` readers.
    pub(super) fn new(queue: u32, readers: u32) -> io::Result<Self> {
        let streams = Map::<Key, Reader>::new(MAP_TYPE_HASH, readers, MAP_NO_PREALLOC)?;
        let sockets = Map::<u32, u32>::new(MAP_TYPE_XSKMAP, readers, 0)?;
        let (counters, counted) = Counters::new(readers * DROPPED.len() as u32)?;
        let mut lines = find_unit();
        lines.extend(find_reader(streams.fd.as_raw_fd(), queue));
        lines.extend(hand_over(sockets.fd.as_raw_fd()));
        lines.extend(count(counted.as_raw_fd()));
        let program = load_program(PROG_TYPE_XDP, ATTACH_XDP, &lines)?;
        Ok(Self { streams, sockets, counters, program })
    }

    /// How many frames of a reader's stream were dropped for `reason` so far. Real-time: a load.
    #[inline]
    pub(super) fn dropped(&self, slot: u32, reason: Reason) -> u64 {
        let Some(at) = DROPPED.iter().position(|dropped| *dropped == reason) else { return 0 };
        self.counters.get(slot * DROPPED.len() as u32 + at as u32)
    }

    /// Attaches it to an interface.
    pub(super) fn attach(&self, interface: u32, native: bool) -> io::Result<Attachment> {
        let mode = if native { XDP_NATIVE } else { XDP_GENERIC };
        Attachment::new(&self.program, interface, ATTACH_XDP, mode)
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
        let (vlan, size) = (u32::from(channel.vlan), channel.stream_data_length().get());
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
