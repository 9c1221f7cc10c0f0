//! The filter that the kernel runs for a reader's socket: a frame that is not the stream's never
//! wakes the reader, and one that has its identifier and is not as it should be is counted. Where
//! the process may not load programs the filter is in the classic packet filter language, which
//! cannot count: a sample is let through, to be counted as it is read.

use crate::bpf::*;
use crate::interface::option;
use onbeat_runtime::channel_io::Reason;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{ADDRESSES, ETHERTYPE_VLAN, STREAM_HEADER, SUBTYPE_EF_STREAM, TAG};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use std::io;

/// Loads four octets.
pub(super) const WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
/// Loads two octets.
pub(super) const HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
/// Loads two octets from so far behind the tag.
const HALF_BEHIND: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
/// Sets how long that is, and subtracts it.
const SET_TAG: u32 = libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM;
const WITHOUT_TAG: u32 = libc::BPF_ALU | libc::BPF_SUB | libc::BPF_X;
const FRAME_LENGTH: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_LEN;
const AND_VALUE: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const IF_IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const GIVE: u32 = libc::BPF_RET | libc::BPF_K;

/// Of the frames of the stream that are not of its shape, one in so many (a power of two) is let
/// through: enough to be counted, too few to push messages out of the socket's buffer.
const SAMPLED: u32 = 64;

/// What the filter of a socket counts.
const COUNTED: [Reason; 2] = [Reason::Shape, Reason::Size];

/// How many frames a socket's filter has dropped, by [`COUNTED`].
#[derive(Debug)]
pub(super) struct Dropped {
    counters: Counters,
    told: [u64; COUNTED.len()],
}

impl Dropped {
    /// How many since the last call. Real-time: a load.
    #[inline]
    pub(super) fn since(&mut self, reason: Reason) -> u64 {
        let Some(at) = COUNTED.iter().position(|counted| *counted == reason) else { return 0 };
        let all = self.counters.get(at as u32);
        all - std::mem::replace(&mut self.told[at], all)
    }

    /// Whether there are any that were not asked for yet. Real-time: loads.
    pub(super) fn is_news(&self) -> bool {
        (0..).zip(&self.told).any(|(at, told)| self.counters.get(at) != *told)
    }
}

/// Where in a packet the values are that a filter looks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'a> {
    /// How it is loaded, where, and what is there.
    pub(super) places: &'a [(u32, u32, u32)],
    /// Where the channel's data unit is.
    pub(super) unit: u32,
    /// An 802.1Q tag may be behind the addresses; then the rest is further behind. Frames that
    /// leave have it there, of those that come the kernel has taken it off.
    pub(super) may_be_tagged: bool,
}

impl Layout<'_> {
    /// All that is compared as it is; what else is of the stream is counted.
    fn identity(&self, channel: &ChannelParameters) -> impl Iterator<Item = (u32, u32, u32)> {
        let (id, unit) = (channel.stream_id.0, self.unit);
        let identity = [(WORD, unit + 4, (id >> 32) as u32), (WORD, unit + 8, id as u32)];
        self.places.iter().copied().chain(identity)
    }

    /// Whether a tag may be before this place.
    fn moves(&self, at: u32) -> bool {
        self.may_be_tagged && at >= ADDRESSES as u32
    }
}

/// Lets the kernel give a socket what has these values in these places, and the channel's data
/// unit, and count what is of the stream and not as it should be; `None` where only a sample of
/// that comes through.
pub(super) fn attach(
    socket: &OwnedFd,
    layout: Layout<'_>,
    channel: &ChannelParameters,
) -> io::Result<Option<Dropped>> {
    if let Ok(dropped) = attach_counting(socket, layout, channel) {
        return Ok(Some(dropped));
    }
    let code = stream(layout, channel);
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // The kernel copies the program; it does not write to it.
    option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
    Ok(None)
}

fn attach_counting(
    socket: &OwnedFd,
    layout: Layout<'_>,
    channel: &ChannelParameters,
) -> io::Result<Dropped> {
    let (counters, table) = Counters::new(COUNTED.len() as u32)?;
    let lines = counting(layout, channel, table.as_raw_fd());
    let program = load_program(PROG_TYPE_SOCKET_FILTER, 0, &lines)?;
    let fd = program.as_raw_fd();
    option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &fd)?;
    Ok(Dropped { counters, told: [0; COUNTED.len()] })
}

/// The program; r8 is how long the tag is. A load beyond the end rejects.
fn counting(
    layout: Layout<'_>,
    channel: &ChannelParameters,
    counters: RawFd,
) -> Vec<LabelledInstruction> {
    let (unit, size) = (layout.unit, channel.stream_data_length().get());
    let header = unit + STREAM_HEADER as u32;
    let frame = |load: u32, at: u32| match (load, layout.moves(at)) {
        (WORD, false) => with(FRAME_32, 0, at as i32),
        (_, false) => with(FRAME_16, 0, at as i32),
        (WORD, true) => LabelledInstruction { from: 8, ..with(FRAME_32_BEHIND, 0, at as i32) },
        (_, true) => LabelledInstruction { from: 8, ..with(FRAME_16_BEHIND, 0, at as i32) },
    };
    let mut lines = vec![copy(6, 1), with(SET, 8, 0)];
    if layout.may_be_tagged {
        let unless_tagged = go(UNLESS_EQUAL_32, 0, i32::from(ETHERTYPE_VLAN), "");
        lines.extend([
            with(FRAME_16, 0, ADDRESSES as i32),
            LabelledInstruction { offset: 1, ..unless_tagged },
            with(SET, 8, TAG as i32),
        ]);
    }
    for (load, at, value) in layout.identity(channel) {
        lines.extend([frame(load, at), go(UNLESS_EQUAL_32, 0, value as i32, "reject")]);
    }
    lines.extend([
        // The frame's length comes first in its context.
        load(LOAD_32, 7, 6, 0),
        load(SUBTRACT_REGISTER, 7, 8, 0),
        go(IF_LESS, 7, header as i32, "shape"),
        frame(HALF, unit),
        with(AND, 0, 0xfff1), // subtype, sv, version, tv
        go(UNLESS_EQUAL_32, 0, i32::from(SUBTYPE_EF_STREAM) << 8 | 0x81, "shape"),
        frame(HALF, unit + 20), // stream_data_length
        go(UNLESS_EQUAL_32, 0, size as i32, "size"),
        go(IF_LESS, 7, (header + size) as i32, "shape"),
        with(SET, 0, -1),
        with(RETURN, 0, 0),
        at("shape", with(SET, 1, 0)),
        go(GO, 0, 0, "count"),
        at("size", with(SET, 1, 1)),
    ]);
    let mut count = add_one(counters);
    count[0] = at("count", count[0]);
    lines.extend(count);
    lines.extend([
        at("counted", go(GO, 0, 0, "reject")),
        at("reject", with(SET, 0, 0)),
        with(RETURN, 0, 0),
    ]);
    lines
}

/// The same in the classic language; X is how long the tag is.
fn stream(layout: Layout<'_>, channel: &ChannelParameters) -> Vec<libc::sock_filter> {
    /// Where a comparison that fails continues: lines before the end.
    const REJECT: usize = 1;
    const SAMPLE: usize = 5;
    let (unit, size) = (layout.unit, channel.stream_data_length().get());
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    let half = if layout.may_be_tagged { HALF_BEHIND } else { HALF };
    let mut lines = Vec::new();
    for (load, at, value) in layout.identity(channel) {
        let load = if layout.moves(at) { load ^ (HALF ^ HALF_BEHIND) } else { load };
        lines.extend([(load, at, 0), (IF_IS, value, REJECT)]);
    }
    lines.extend([
        (half, unit, 0),
        (AND_VALUE, 0xfff1, 0), // subtype, sv, version, tv
        (IF_IS, u32::from(SUBTYPE_EF_STREAM) << 8 | 0x81, SAMPLE),
        (half, unit + 20, 0), // stream_data_length
        (IF_IS, size, SAMPLE),
        (FRAME_LENGTH, 0, 0),
        (WITHOUT_TAG, 0, 0),
        (IF_AT_LEAST, unit + STREAM_HEADER as u32 + size, SAMPLE),
        (GIVE, u32::MAX, 0),
        (WORD, random, 0),
        (AND_VALUE, SAMPLED - 1, 0),
        (IF_IS, 0, REJECT),
        (GIVE, u32::MAX, 0),
        (GIVE, 0, 0),
    ]);
    let count = lines.len();
    let assemble = |(at, (code, k, before_the_end)): (usize, (u32, u32, usize))| {
        let no = if before_the_end > 0 { count - before_the_end - at - 1 } else { 0 };
        libc::sock_filter { code: code as u16, jt: 0, jf: no as u8, k }
    };
    let line = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut code = vec![line(SET_TAG, 0, 0)];
    if layout.may_be_tagged {
        code.extend([
            line(HALF, 0, ADDRESSES as u32),
            line(IF_IS, 1, ETHERTYPE_VLAN.into()),
            line(SET_TAG, 0, TAG as u32),
        ]);
    }
    code.extend(lines.into_iter().enumerate().map(assemble));
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::time::Span;
    use onbeat_model::units::{MacAddress, Octets, StreamId};

    /// What the filter does, as the kernel would (only the instructions that it uses).
    fn passes(code: &[libc::sock_filter], frame: &[u8], random: u32) -> bool {
        let (mut a, mut x, mut pc) = (0u32, 0u32, 0usize);
        loop {
            let line = code[pc];
            pc += 1;
            let code = u32::from(line.code);
            let branch = |holds| usize::from(if holds { line.jt } else { line.jf });
            match code & 7 {
                libc::BPF_RET => return line.k != 0,
                libc::BPF_LDX => x = line.k,
                libc::BPF_ALU if code == WITHOUT_TAG => a -= x,
                libc::BPF_ALU => a &= line.k,
                libc::BPF_JMP if code & 0xf0 == libc::BPF_JGE => pc += branch(a >= line.k),
                libc::BPF_JMP => pc += branch(a == line.k),
                _ if code & 0xe0 == libc::BPF_LEN => a = frame.len() as u32,
                _ if line.k == (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32 => a = random,
                _ => {
                    let width = match code & 0x18 {
                        libc::BPF_W => 4,
                        libc::BPF_H => 2,
                        _ => 1,
                    };
                    let behind = if code & 0xe0 == libc::BPF_IND { x } else { 0 };
                    let from = (line.k + behind) as usize;
                    let Some(octets) = frame.get(from..from + width) else { return false };
                    a = octets.iter().fold(0, |a, o| a << 8 | u32::from(*o));
                }
            }
        }
    }

    #[test]
    fn the_filter_passes_the_streams_frames_and_nothing_else() {
        let channel = ChannelParameters {
            destination: MacAddress([1, 0, 0x5e, 1, 0x11, 0x42]),
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            stream_id: StreamId(0x1122_3344_5566_7788),
            vlan: 2,
            pcp: 3,
            size: Octets::new(8),
            integrity: Default::default(),
            replicated: false,
            launch: None,
            talker_address: None,
            interval: Span::from_ms(20),
            tolerance: Span::ZERO,
            catch_up: Span::ZERO,
            fixed_delay: Span::from_ms(2),
            clock_error: Span::ZERO,
            epoch: 0,
        };
        let d = channel.destination.0;
        let address = [
            (WORD, 0, u32::from_be_bytes([d[0], d[1], d[2], d[3]])),
            (HALF, 4, u32::from(u16::from_be_bytes([d[4], d[5]]))),
        ];
        let layout = Layout { places: &address, unit: 14, may_be_tagged: false };
        let code = stream(layout, &channel);
        let mut talker = onbeat_runtime::talker::Talker::new(channel);
        talker.write(onbeat_model::time::SyncedTime::ZERO, &[9; 8], false).expect("the first");
        let bare = [&talker.frame()[..12], &talker.frame()[16..]].concat();
        let with = |at: usize, mask: u8| {
            let mut other = bare.clone();
            other[at] ^= mask;
            other
        };
        let (sampled, not) = (SAMPLED * 3, SAMPLED * 3 + 1);
        assert!(passes(&code, &bare, not));
        assert!(passes(&code, &with(15, 0x08), not), "mr may be anything");
        for (name, at) in [("destination", 5), ("destination", 0), ("id", 18), ("id", 25)] {
            assert!(!passes(&code, &with(at, 1), sampled), "another {name}");
        }
        for (name, at) in [("subtype", 14), ("version", 15), ("length", 35)] {
            let foreign = with(at, 0x10);
            assert!(!passes(&code, &foreign, not), "another {name}");
            assert!(passes(&code, &foreign, sampled), "another {name}, sampled");
        }
        assert!(!passes(&code, &bare[..14 + 24 + 7], not), "cut within the message");
        for length in 0..26 {
            assert!(!passes(&code, &bare[..length], sampled), "cut to {length}");
        }
        // What leaves has its tag.
        let tagged = talker.frame();
        let cut = |octets: usize| &tagged[..18 + 24 + octets];
        assert!(!passes(&code, tagged, sampled));
        let code = stream(Layout { may_be_tagged: true, ..layout }, &channel);
        assert!(passes(&code, &bare, not) && passes(&code, cut(8), not));
        assert!(!passes(&code, &bare[..14 + 24 + 7], not) && !passes(&code, cut(7), not));
    }
}
