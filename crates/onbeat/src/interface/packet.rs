//! AF_PACKET: one socket per channel end, with a filter in the kernel, so that a reader blocks in
//! its own receive call and wakes for its own stream only.

use crate::clock::MonoTime;
use crate::interface::closer;
use crate::interface::filter::{self, Dropped, Layout};
use crate::interface::presence::EndLink;
use crate::interface::sent_stamp::{self, SentStamp};
use crate::interface::{Arrival, Interface, InterfaceOptions, option, socket};
use onbeat_model::record::Role;
use onbeat_model::time::Span;
use onbeat_model::units::MacAddress;
use onbeat_runtime::channel_io::Framing;
use onbeat_runtime::gptp;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{ADDRESSES, ETHERNET, ETHERTYPE_AVTP, ETHERTYPE_R_TAG, R_TAG, TAGGED};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::{Arc, Weak};

/// ETH_P_ALL of `linux/if_ether.h`.
const EVERY_PROTOCOL: u16 = 3;

/// How long one wait for a frame of PTP is.
const OVERHEAR_STEP: Span = Span::from_ms(100);

/// A channel end's socket.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Arc<OwnedFd>,
    link: Arc<EndLink>,
    stamped: bool,
    notes: bool,
    dropped: Option<Dropped>,
}

impl PacketSocket {
    /// A socket that only sends.
    pub fn talker(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
    ) -> io::Result<Self> {
        let socket = open()?;
        attach(&socket, interface, channel, options, Role::Talker)?;
        socket::prioritise(&socket, channel.pcp, options)?;
        let launches = socket::let_launch(&socket, interface, options);
        let notes = options.sent_stamps;
        if notes {
            sent_stamp::note_departures(&socket)?;
        }
        let link = Arc::new(EndLink::new(options.untagged, launches));
        Ok(Self { socket: Arc::new(socket), link, stamped: false, notes, dropped: None })
    }

    /// A socket that receives the channel's frames and no others.
    pub fn listener(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
    ) -> io::Result<Self> {
        let socket = open()?;
        let hears_leaving = hears_leaving(interface, options);
        let dropped = filter_frames(&socket, channel, hears_leaving)?;
        let ignores = i32::from(!hears_leaving);
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ignores)?;
        socket::listen(&socket, options)?;
        attach(&socket, interface, channel, options, Role::Listener)?;
        let (stamped, link) = (options.timestamps, Arc::default());
        Ok(Self { socket: Arc::new(socket), link, stamped, notes: false, dropped })
    }

    /// Sends a tagged frame; with `launch`, so that it leaves at that instant of CLOCK_TAI.
    #[inline]
    pub fn send(&mut self, frame: &[u8], launch: Option<i64>) -> io::Result<()> {
        if launch.is_none() && !self.link.is_untagged() {
            return send_whole(&self.socket, frame);
        }
        self.send_in_parts(frame, launch)
    }

    /// Sends tagged frames of `length` octets each.
    pub(super) fn send_many(&self, frames: &[u8], length: usize) -> (usize, io::Result<()>) {
        let (first, rest) = if self.link.is_untagged() { (ADDRESSES, TAGGED - 2) } else { (0, 0) };
        let frames = frames.chunks_exact(length);
        let parts = frames.map(|frame| [&frame[..first], &frame[rest..]].map(IoSlice::new));
        socket::send_many(&self.socket, parts)
    }

    #[cold]
    fn send_in_parts(&self, frame: &[u8], launch: Option<i64>) -> io::Result<()> {
        let whole = [IoSlice::new(frame)];
        let (addresses, rest) = (&frame[..ADDRESSES], &frame[TAGGED - 2..]);
        let without_tag = [IoSlice::new(addresses), IoSlice::new(rest)];
        let parts: &[IoSlice<'_>] = if self.link.is_untagged() { &without_tag } else { &whole };
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

    /// Whether the kernel notes when frames leave.
    #[inline]
    pub(super) fn notes(&self) -> bool {
        self.notes
    }

    /// Takes what the kernel noted of a frame that was sent.
    pub(super) fn sent_stamp(&self) -> Option<SentStamp> {
        sent_stamp::next(&self.socket)
    }

    /// What the kernel has dropped, if it counts that.
    #[inline]
    pub(super) fn counted(&mut self) -> Option<&mut Dropped> {
        self.dropped.as_mut()
    }

    /// Whether the kernel launches frames at their time.
    pub fn launches(&self) -> bool {
        self.link.launches()
    }

    /// What the end knows of its interface.
    pub(super) fn link(&self) -> &Arc<EndLink> {
        &self.link
    }

    /// What can be attached to another interface.
    pub(super) fn socket(&self) -> Weak<OwnedFd> {
        Arc::downgrade(&self.socket)
    }

    fn take(&mut self, into: &mut [u8], flags: i32) -> io::Result<Option<Arrival>> {
        // A frame that is longer than the buffer shows its whole length, so that it is not taken
        // for a shorter one.
        let flags = flags | libc::MSG_TRUNC;
        let (got, stamp) = if self.stamped {
            socket::receive(&self.socket, &mut [IoSliceMut::new(into)], flags, None)
        } else {
            (receive(&self.socket, into, flags), None)
        };
        let Some(length) = socket::unless_none(got)? else { return Ok(None) };
        let length = if length <= into.len() { length } else { 0 };
        Ok(Some(Arrival { length, framing: Framing::Ethernet, stamp }))
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // The kernel frees the socket with the last descriptor.
        if let Ok(last) = rustix::io::fcntl_dupfd_cloexec(&*self.socket, 0) {
            closer::close(last);
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
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None);
    socket.map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS => io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "raw frames need CAP_NET_RAW: `setcap cap_net_raw+ep PROGRAM`, or root ({errno})"
            ),
        ),
        errno => errno.into(),
    })
}

/// Attaches an end's socket to an interface: one that is not attached, or whose interface is gone.
pub(super) fn attach(
    socket: &OwnedFd,
    interface: &Interface,
    channel: &ChannelParameters,
    options: &InterfaceOptions,
    role: Role,
) -> io::Result<()> {
    if role == Role::Talker {
        // Without a protocol it receives nothing.
        return bind(socket, interface, 0);
    }
    if channel.destination.0[0] & 1 == 1 {
        join(socket, interface, channel.destination)?;
    }
    let protocol = match hears_leaving(interface, options) {
        true => EVERY_PROTOCOL,
        false => ethertype(channel),
    };
    bind(socket, interface, protocol)
}

/// Whether a listener's socket is to have what leaves, too: the kernel shows that to sockets of
/// every protocol only. What leaves by the loopback comes in.
fn hears_leaving(interface: &Interface, options: &InterfaceOptions) -> bool {
    options.own_host && !interface.loopback
}

/// The EtherType of a channel's frames, behind the 802.1Q tag.
fn ethertype(channel: &ChannelParameters) -> u16 {
    if channel.replicated { ETHERTYPE_R_TAG } else { ETHERTYPE_AVTP }
}

/// Refuses a channel whose frames an interface does not take, before any is written.
pub(super) fn fits(interface: &Interface, channel: &ChannelParameters) -> io::Result<()> {
    // The kernel's limit is that of a frame without header and tag.
    let payload = channel.frame_octets() - TAGGED;
    let Some(over) = payload.checked_sub(interface.mtu as usize).filter(|over| *over > 0) else {
        return Ok(());
    };
    let (size, mtu, name) = (channel.size.get() as usize, interface.mtu, &interface.name);
    let why = match channel.fragments().count {
        1 => format!(
            "a message of {size} octets does not fit into one frame: with an MTU of {mtu} octets \
             it may have {}; `ip link set {name} mtu {payload}` allows it",
            size.saturating_sub(over)
        ),
        _ => format!(
            "a message of {size} octets is sent in frames that need an MTU of {payload} octets, \
             and it is {mtu}; `ip link set {name} mtu {payload}` allows it"
        ),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Waits for a frame of PTP's EtherType that the interface receives, until `wanted` picks one of
/// those that come, or the time is over. Not for real-time paths.
///
/// # Errors
/// The kernel's: it is the superuser's.
pub fn overhear_ptp<T>(
    interface: &Interface,
    patience: Span,
    wanted: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<Option<T>> {
    let socket = open()?;
    let wait = libc::timeval { tv_sec: 0, tv_usec: OVERHEAR_STEP.as_ns() / 1_000 };
    super::option::set(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait)?;
    bind(&socket, interface, gptp::ETHERTYPE)?;
    let until = MonoTime::now() + patience;
    let mut frame = [0; 256];
    while MonoTime::now() < until {
        match rustix::net::recv(&socket, &mut frame[..], RecvFlags::empty()) {
            Ok((length, _)) => {
                let message = frame.get(ETHERNET..length.min(frame.len())).unwrap_or_default();
                if let Some(found) = wanted(message) {
                    return Ok(Some(found));
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

pub(super) fn bind(socket: &OwnedFd, interface: &Interface, protocol: u16) -> io::Result<()> {
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

/// Lets the interface take frames to a group address.
pub(super) fn join(socket: &OwnedFd, interface: &Interface, group: MacAddress) -> io::Result<()> {
    let mut address = [0; 8];
    address[..6].copy_from_slice(&group.0);
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index as i32,
        mr_type: libc::PACKET_MR_MULTICAST as u16,
        mr_alen: 6,
        mr_address: address,
    };
    option::set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Lets the kernel pass frames of two EtherTypes only.
pub(super) fn only_ethertypes(socket: &OwnedFd, [one, other]: [u16; 2]) -> io::Result<()> {
    let line = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let code = [
        line(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, ADDRESSES as u32),
        line(is, 1, 0, one.into()),
        line(is, 0, 1, other.into()),
        line(give, 0, 0, 0xffff),
        line(give, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // The kernel copies the program; it does not write to it.
    option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Lets the kernel pass only frames of this stream to this address. Whether the frame was tagged
/// does not matter: of what comes the kernel has taken the tag off before.
fn filter_frames(
    socket: &OwnedFd,
    channel: &ChannelParameters,
    hears_leaving: bool,
) -> io::Result<Option<Dropped>> {
    let d = channel.destination.0;
    let (bare, behind) = (ETHERNET as u32, (ETHERNET + R_TAG) as u32);
    let unit = if channel.replicated { behind } else { bare };
    let places = [
        (filter::WORD, 0, u32::from_be_bytes([d[0], d[1], d[2], d[3]])),
        (filter::HALF, 4, u32::from(u16::from_be_bytes([d[4], d[5]]))),
        // A socket that is not bound to every protocol is bound to this one.
        (filter::HALF, bare - 2, u32::from(ethertype(channel))),
        (filter::HALF, unit - 2, u32::from(ETHERTYPE_AVTP)),
    ];
    let layout = Layout { places: &places, unit, may_be_tagged: hears_leaving };
    filter::attach(socket, layout, channel)
}

/// Sends without what a message header costs, some tenth of the whole path. A full queue must not
/// make a task wait: that frame is lost, and the task is told.
#[inline]
fn send_whole(socket: &OwnedFd, frame: &[u8]) -> io::Result<()> {
    // Not the C library's call, which is a cancellation point and pays for that.
    rustix::net::send(socket, frame, rustix::net::SendFlags::DONTWAIT)?;
    Ok(())
}

fn receive(socket: &OwnedFd, into: &mut [u8], flags: i32) -> io::Result<usize> {
    // Its second figure is the frame's whole length, if the flags ask for that.
    let (_, length) = rustix::net::recv(socket, into, RecvFlags::from_bits_retain(flags as u32))?;
    Ok(length)
}
