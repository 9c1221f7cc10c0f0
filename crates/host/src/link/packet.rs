//! AF_PACKET: one socket per channel end, with a filter in the kernel, so that a reader blocks in
//! its own receive call and wakes for its own stream only.

use crate::link::{Arrival, Interface, LOOK_AGAIN, LinkOptions, Stamp, option};
use onbeat_runtime::port::Framing;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{ADDRESSES, ETHERTYPE_AVTP, ETHERTYPE_VLAN, SUBTYPE_EF_STREAM, TAGGED};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{self, IoSlice};

/// How long a busy-polling receive polls before it blocks, in microseconds.
const BUSY_POLL_US: i32 = 50;

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
        let pcp = channel.pcp & 7;
        let priority = options.priorities[usize::from(pcp)].unwrap_or(u32::from(pcp));
        option::set(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)?;
        let mut launches = false;
        if options.launch_time {
            let config = libc::sock_txtime { clockid: libc::CLOCK_TAI, flags: 0 };
            launches = option::set(&socket, libc::SOL_SOCKET, libc::SO_TXTIME, &config).is_ok();
        }
        Ok(Self { socket, untagged: options.untagged, stamped: false, launches })
    }

    /// A socket that receives the channel's frames and no others.
    pub fn listener(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &LinkOptions,
    ) -> io::Result<Self> {
        let socket = open()?;
        attach_filter(&socket, channel)?;
        let one: i32 = 1;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one)?;
        if channel.destination.0[0] & 1 == 1 {
            join(&socket, interface, channel)?;
        }
        if options.busy_poll {
            busy_poll(&socket)?;
        }
        if options.timestamps {
            let wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE
                | libc::SOF_TIMESTAMPING_SOFTWARE
                | libc::SOF_TIMESTAMPING_RX_HARDWARE
                | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            option::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &wanted)?;
        }
        let patience = libc::timeval { tv_sec: 0, tv_usec: LOOK_AGAIN.as_ns() / 1_000 };
        option::set(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience)?;
        bind(&socket, interface, ETHERTYPE_AVTP)?;
        Ok(Self { socket, untagged: false, stamped: options.timestamps, launches: false })
    }

    /// Sends a tagged frame; with `launch`, so that it leaves at that instant of CLOCK_TAI.
    pub fn send(&mut self, frame: &[u8], launch: Option<i64>) -> io::Result<()> {
        let whole = [IoSlice::new(frame)];
        let (addresses, rest) = (&frame[..ADDRESSES], &frame[TAGGED - 2..]);
        let without_tag = [IoSlice::new(addresses), IoSlice::new(rest)];
        let parts: &[IoSlice<'_>] = if self.untagged { &without_tag } else { &whole };
        send(&self.socket, parts, launch)
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
            receive_stamped(&self.socket, into, flags)
        } else {
            (receive(&self.socket, into, flags), None)
        };
        match got {
            Ok(length) => {
                let length = if length <= into.len() { length } else { 0 };
                Ok(Some(Arrival { length, framing: Framing::Ethernet, stamp }))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
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

/// Lets blocking receives poll the driver first.
pub(super) fn busy_poll(socket: &OwnedFd) -> io::Result<()> {
    option::set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &BUSY_POLL_US)
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

/// Lets the kernel pass only IEEE 1722 frames of this stream to this address, tagged with this
/// VLAN, with priority only, or not at all.
fn attach_filter(socket: &OwnedFd, channel: &ChannelParameters) -> io::Result<()> {
    let code = filter(channel);
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // The kernel copies the program; it does not write to it.
    option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// A line of the filter; a label names where a jump goes, the empty one the next line.
struct Line {
    label: &'static str,
    code: u32,
    k: u32,
    yes: &'static str,
    no: &'static str,
}

/// The filter in the kernel's classic packet filter language.
fn filter(channel: &ChannelParameters) -> Vec<libc::sock_filter> {
    const HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
    const WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const OCTET_AT_X: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_IND;
    const WORD_AT_X: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_IND;
    const SET_X: u32 = libc::BPF_LDX | libc::BPF_IMM;
    const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
    const IF: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const GO_TO: u32 = libc::BPF_JMP | libc::BPF_JA;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let auxiliary = |what: i32| (libc::SKF_AD_OFF + what) as u32;
    let ethertype = u32::from(ETHERTYPE_AVTP);
    let d = channel.destination.0;
    let id = channel.stream_id.0;
    let do_at = |label, code, k| Line { label, code, k, yes: "", no: "" };
    let go = |k, yes, no| Line { label: "", code: IF, k, yes, no };
    let lines = [
        // The kernel has taken the tag off, or there is none, or it is still there.
        do_at("", HALF, auxiliary(libc::SKF_AD_VLAN_TAG_PRESENT)),
        go(0, "type", ""),
        do_at("", HALF, auxiliary(libc::SKF_AD_VLAN_TAG)),
        do_at("", AND, 0x0fff),
        go(u32::from(channel.vlan), "type", ""),
        go(0, "type", "reject"), // tagged with a priority only
        do_at("type", HALF, ADDRESSES as u32),
        go(ethertype, "bare", ""),
        go(u32::from(ETHERTYPE_VLAN), "", "reject"),
        do_at("", HALF, TAGGED as u32 - 2),
        go(ethertype, "tagged", "reject"),
        do_at("bare", SET_X, ADDRESSES as u32 + 2),
        Line { label: "", code: GO_TO, k: 0, yes: "stream", no: "" },
        do_at("tagged", SET_X, TAGGED as u32),
        do_at("stream", WORD, 0),
        go(u32::from_be_bytes([d[0], d[1], d[2], d[3]]), "", "reject"),
        do_at("", HALF, 4),
        go(u32::from(u16::from_be_bytes([d[4], d[5]])), "", "reject"),
        do_at("", OCTET_AT_X, 0),
        go(u32::from(SUBTYPE_EF_STREAM), "", "reject"),
        do_at("", WORD_AT_X, 4),
        go((id >> 32) as u32, "", "reject"),
        do_at("", WORD_AT_X, 8),
        go(id as u32, "", "reject"),
        do_at("", RETURN, u32::MAX),
        do_at("reject", RETURN, 0),
    ];
    let distance = |from: usize, label: &str| {
        let to = lines.iter().position(|line| !label.is_empty() && line.label == label);
        to.map_or(0, |to| (to - from - 1) as u8)
    };
    let assembled = lines.iter().enumerate().map(|(at, line)| {
        let (yes, no) = (distance(at, line.yes), distance(at, line.no));
        let code = line.code as u16;
        if line.code == GO_TO {
            libc::sock_filter { code, jt: 0, jf: 0, k: u32::from(yes) }
        } else {
            libc::sock_filter { code, jt: yes, jf: no, k: line.k }
        }
    });
    assembled.collect()
}

fn receive(socket: &OwnedFd, into: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: `into` is valid for writing its length.
    let got =
        unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Room for control messages, aligned as these must be.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Receives with the instant at which the hardware, or else the kernel, had the frame.
fn receive_stamped(
    socket: &OwnedFd,
    into: &mut [u8],
    flags: i32,
) -> (io::Result<usize>, Option<Stamp>) {
    let mut control = Control([0; 128]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all zeros is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    // SAFETY: the message's pointers are valid for writing the lengths beside them.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let Ok(length) = usize::try_from(got) else {
        return (Err(io::Error::last_os_error()), None);
    };
    // SAFETY: the kernel has filled in the control messages and their length.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let stamp = first
        .filter(|c| c.cmsg_level == libc::SOL_SOCKET && c.cmsg_type == libc::SCM_TIMESTAMPING)
        .map(|header| {
            // SAFETY: a message of this type carries three `timespec`.
            unsafe { libc::CMSG_DATA(header).cast::<[libc::timespec; 3]>().read_unaligned() }
        });
    let ns = |t: libc::timespec| t.tv_sec * 1_000_000_000 + t.tv_nsec;
    let stamp = stamp.and_then(|[software, _, hardware]| match (ns(hardware), ns(software)) {
        (0, 0) => None,
        (0, software) => Some(Stamp::Software(software)),
        (hardware, _) => Some(Stamp::Hardware(hardware)),
    });
    (Ok(length), stamp)
}

fn send(socket: &OwnedFd, parts: &[IoSlice<'_>], launch: Option<i64>) -> io::Result<()> {
    let mut control = Control([0; 128]);
    // SAFETY: all zeros is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // `IoSlice` is guaranteed to have the layout of `iovec`; sending does not write to it.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len();
    if let Some(at) = launch {
        let size = size_of::<i64>() as u32;
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: pure computations on a length; one such message fits in the control memory, so
        // the first header exists and has room for its data.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_TXTIME;
            (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
            libc::CMSG_DATA(header).cast::<i64>().write_unaligned(at);
        }
    }
    // A full queue must not make a task wait: that frame is lost, and the task is told.
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: the message's pointers are valid for reading the lengths beside them.
    let got = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::time::Span;
    use onbeat_model::units::{MacAddress, Octets, StreamId};

    /// What the filter does, as the kernel would (only the instructions that it uses).
    fn passes(code: &[libc::sock_filter], frame: &[u8], tag: Option<u16>) -> bool {
        let (mut a, mut x, mut pc) = (0u32, 0usize, 0usize);
        loop {
            let line = code[pc];
            pc += 1;
            let code = u32::from(line.code);
            let class = code & 7;
            let width = match code & 0x18 {
                libc::BPF_W => 4,
                libc::BPF_H => 2,
                _ => 1,
            };
            match class {
                libc::BPF_RET => return line.k != 0,
                libc::BPF_LDX => x = line.k as usize,
                libc::BPF_ALU => a &= line.k,
                libc::BPF_JMP if code & 0xf0 == libc::BPF_JA => pc += line.k as usize,
                libc::BPF_JMP => {
                    pc += usize::from(if a == line.k { line.jt } else { line.jf });
                }
                _ if line.k == (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32 => {
                    a = u32::from(tag.is_some());
                }
                _ if line.k == (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG) as u32 => {
                    a = u32::from(tag.unwrap_or(0));
                }
                _ => {
                    let from = line.k as usize + if code & 0xe0 == libc::BPF_IND { x } else { 0 };
                    let Some(octets) = frame.get(from..from + width) else { return false };
                    a = octets.iter().fold(0, |a, o| a << 8 | u32::from(*o));
                }
            }
        }
    }

    #[test]
    fn the_filter_passes_the_streams_frames_tagged_or_not_and_nothing_else() {
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
        let tagged = talker.frame().to_vec();
        let bare = [&tagged[..12], &tagged[16..]].concat();
        assert!(passes(&code, &tagged, None));
        assert!(passes(&code, &bare, None));
        assert!(passes(&code, &bare, Some(0x6002)));
        assert!(passes(&code, &bare, Some(0x6000)), "priority-tagged");
        assert!(!passes(&code, &bare, Some(0x6003)), "another VLAN");
        for (name, at) in
            [("destination", 5), ("destination", 0), ("type", 13), ("subtype", 14), ("id", 18)]
        {
            let mut foreign = bare.clone();
            foreign[at] ^= 1;
            assert!(!passes(&code, &foreign, None), "another {name}");
        }
        let mut foreign = bare.clone();
        foreign[25] ^= 1;
        assert!(!passes(&code, &foreign, None), "another stream");
        for length in 0..26 {
            assert!(!passes(&code, &bare[..length], None), "cut to {length}");
        }
    }
}
