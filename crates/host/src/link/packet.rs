//! AF_PACKET: one socket per channel end, with a filter in the kernel, so that a reader blocks in
//! its own receive call and wakes for its own stream only.

use crate::link::{Arrival, Interface, LinkOptions, option, socket};
use onbeat_runtime::port::Framing;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{ADDRESSES, ETHERTYPE_AVTP, STREAM_HEADER, SUBTYPE_EF_STREAM, TAGGED};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{self, IoSlice, IoSliceMut};

/// A channel end's socket.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    untagged: bool,
    stamped: bool,
    launches: bool,
}

impl PacketSocket {
    /// A socket that only sends.
    pub fn talker(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &LinkOptions,
    ) -> io::Result<Self> {
        let socket = open()?;
        // Without a protocol it receives nothing.
        bind(&socket, interface, 0)?;
        socket::prioritise(&socket, channel, options)?;
        let launches = socket::let_launch(&socket, interface, options);
        Ok(Self { socket, untagged: options.untagged, stamped: false, launches })
    }

    /// A socket that receives the channel's frames and no others.
    pub fn listener(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &LinkOptions,
    ) -> io::Result<Self> {
        let socket = open()?;
        socket::attach_filter(&socket, &filter(channel))?;
        let one: i32 = 1;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one)?;
        if channel.destination.0[0] & 1 == 1 {
            join(&socket, interface, channel)?;
        }
        socket::listen(&socket, options)?;
        bind(&socket, interface, ETHERTYPE_AVTP)?;
        Ok(Self { socket, untagged: false, stamped: options.timestamps, launches: false })
    }

    /// Sends a tagged frame; with `launch`, so that it leaves at that instant of CLOCK_TAI.
    pub fn send(&mut self, frame: &[u8], launch: Option<i64>) -> io::Result<()> {
        if launch.is_none() && !self.untagged {
            return send_whole(&self.socket, frame);
        }
        let whole = [IoSlice::new(frame)];
        let (addresses, rest) = (&frame[..ADDRESSES], &frame[TAGGED - 2..]);
        let without_tag = [IoSlice::new(addresses), IoSlice::new(rest)];
        let parts: &[IoSlice<'_>] = if self.untagged { &without_tag } else { &whole };
        socket::send(&self.socket, parts, launch)
    }

    /// Takes a frame if there is one.
    pub fn try_receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        self.take(into, libc::MSG_DONTWAIT)
    }

    /// Waits for a frame, for [`LOOK_AGAIN`] or until a signal comes.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        self.take(into, 0)
    }

    /// Whether the kernel launches frames at their time.
    pub fn launches(&self) -> bool {
        self.launches
    }

    fn take(&mut self, into: &mut [u8], flags: i32) -> io::Result<Option<Arrival>> {
        // A frame that is longer than the buffer shows its whole length, so that it is not taken
        // for a shorter one.
        let flags = flags | libc::MSG_TRUNC;
        let (got, stamp) = if self.stamped {
            socket::receive(&self.socket, &mut [IoSliceMut::new(into)], flags)
        } else {
            (receive(&self.socket, into, flags), None)
        };
        let Some(length) = socket::unless_none(got)? else { return Ok(None) };
        let length = if length <= into.len() { length } else { 0 };
        Ok(Some(Arrival { length, framing: Framing::Ethernet, stamp }))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that receives nothing until it is bound.
pub(super) fn open() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::PACKET,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

fn bind(socket: &OwnedFd, interface: &Interface, protocol: u16) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface.index as i32;
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is valid for reading its own size.
    let got = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) };
    if got == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the interface take frames to the channel's group address.
pub(super) fn join(
    socket: &OwnedFd,
    interface: &Interface,
    channel: &ChannelParameters,
) -> io::Result<()> {
    let mut address = [0; 8];
    address[..6].copy_from_slice(&channel.destination.0);
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index as i32,
        mr_type: libc::PACKET_MR_MULTICAST as u16,
        mr_alen: 6,
        mr_address: address,
    };
    option::set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Of the frames of the stream that are not of its shape, one in so many (a power of two) is let
/// through: enough to be counted, too few to push messages out of the socket's buffer.
const SAMPLED: u32 = 64;

/// Lets the kernel pass only frames of this stream to this address. The socket is bound to the
/// EtherType, and whether the frame was tagged does not matter: the kernel has taken the tag off
/// before.
fn filter(channel: &ChannelParameters) -> Vec<libc::sock_filter> {
    const WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
    const FRAME_LENGTH: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_LEN;
    const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    const UNIT: u32 = ADDRESSES as u32 + 2;
    /// Where a comparison that fails goes on: lines before the end.
    const REJECT: usize = 1;
    const SAMPLE: usize = 5;
    let d = channel.destination.0;
    let id = channel.stream_id.0;
    let size = channel.size.get();
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    let lines = [
        (WORD, 0, 0),
        (IF_EQUAL, u32::from_be_bytes([d[0], d[1], d[2], d[3]]), REJECT),
        (HALF, 4, 0),
        (IF_EQUAL, u32::from(u16::from_be_bytes([d[4], d[5]])), REJECT),
        (WORD, UNIT + 4, 0),
        (IF_EQUAL, (id >> 32) as u32, REJECT),
        (WORD, UNIT + 8, 0),
        (IF_EQUAL, id as u32, REJECT),
        (HALF, UNIT, 0),
        (AND, 0xfff1, 0), // subtype, sv, version, tv
        (IF_EQUAL, u32::from(SUBTYPE_EF_STREAM) << 8 | 0x81, SAMPLE),
        (HALF, UNIT + 20, 0), // stream_data_length
        (IF_EQUAL, size, SAMPLE),
        (FRAME_LENGTH, 0, 0),
        (IF_AT_LEAST, UNIT + STREAM_HEADER as u32 + size, SAMPLE),
        (RETURN, u32::MAX, 0),
        (WORD, random, 0),
        (AND, SAMPLED - 1, 0),
        (IF_EQUAL, 0, REJECT),
        (RETURN, u32::MAX, 0),
        (RETURN, 0, 0),
    ];
    let assemble = |(at, (code, k, before_the_end)): (usize, (u32, u32, usize))| {
        let no = if before_the_end > 0 { lines.len() - before_the_end - at - 1 } else { 0 };
        libc::sock_filter { code: code as u16, jt: 0, jf: no as u8, k }
    };
    lines.into_iter().enumerate().map(assemble).collect()
}

/// Sends without what a message header costs, some tenth of the whole way. A full queue must not
/// make a task wait: that frame is lost, and the task is told.
fn send_whole(socket: &OwnedFd, frame: &[u8]) -> io::Result<()> {
    let (at, size) = (frame.as_ptr().cast(), frame.len());
    // SAFETY: the frame is valid for reading its own length.
    let got = unsafe { libc::send(socket.as_raw_fd(), at, size, libc::MSG_DONTWAIT) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn receive(socket: &OwnedFd, into: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: `into` is valid for writing its length.
    let got =
        unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::time::Span;
    use onbeat_model::units::{MacAddress, Octets, StreamId};

    /// What the filter does, as the kernel would (only the instructions that it uses).
    fn passes(code: &[libc::sock_filter], frame: &[u8], random: u32) -> bool {
        let (mut a, mut pc) = (0u32, 0usize);
        loop {
            let line = code[pc];
            pc += 1;
            let code = u32::from(line.code);
            let branch = |holds| usize::from(if holds { line.jt } else { line.jf });
            match code & 7 {
                libc::BPF_RET => return line.k != 0,
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
                    let from = line.k as usize;
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
            interval: Span::from_ms(20),
            tolerance: Span::ZERO,
            fixed_delay: Span::from_ms(2),
            epoch: 0,
        };
        let code = filter(&channel);
        let mut talker = onbeat_runtime::talker::Talker::new(channel);
        talker.write(onbeat_model::time::LocalTime::ZERO, &[9; 8], false).expect("the first");
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
    }
}
