//! UDP: IEEE 1722 data units in datagrams, for networks without TSN and for comparison (the "IP
//! channel" of the papers).
//!
//! The encapsulation is that of IEEE 1722-2016 Annex J: port 17220, and before the data unit a
//! 32-bit sequence number that counts the datagrams of one sender. COVESA Open1722 (`avtp/Udp.h`
//! and its CAN talker) and Wireshark's dissector (`packet-ieee1722.c`) have the same port and
//! header. The data unit carries no padding.
//!
//! # Groups
//! The channel's group address decides the IP group, and the kernel maps that back onto Ethernet:
//! * IPv4: 239.*x*.*y*.*z* of the lower 23 bits, so that 01:00:5e:*x*:*y*:*z* is its own image
//!   (RFC 1112 section 6.4; the block is that of RFC 2365);
//! * IPv6: ff15::*wwxx*:*yyzz* of the lower 32 bits, so that 33:33:*ww*:*xx*:*yy*:*zz* is its own
//!   image (RFC 2464 section 7; transient, site-local).
//!
//! Channels whose addresses differ above these bits share a group; each reader's filter in the
//! kernel passes its own stream only.
//!
//! # What holds
//! Datagrams leave by the given interface, with a time to live of 1: they are for this network,
//! not beyond a router. Only what came in by that interface, or was sent by it from this same host,
//! is received: two programs on one host can talk. A datagram never has several fragments. Its
//! DSCP is the class selector (RFC 2474 section 4.2.2.2) with the bits of the channel's PCP, so
//! that equipment that derives one from the other agrees.

use crate::interface::filter::{self, Dropped, Layout};
use crate::interface::presence::{self, EndLink};
use crate::interface::sent_stamp::{self, SentStamp};
use crate::interface::{Arrival, Interface, InterfaceOptions, device, option, socket};
use onbeat_model::units::MacAddress;
use onbeat_runtime::batch::AT_ONCE;
use onbeat_runtime::channel_io::Framing;
use onbeat_runtime::talker::ChannelParameters;
use onbeat_runtime::wire::{self, Pdu, STREAM_HEADER};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::{Arc, Weak};

/// The UDP port of IEEE 1722 streams.
pub const PORT: u16 = 17_220;
/// Octets of the sequence number before the data unit.
const ENCAPSULATION: usize = 4;
const UDP_HEADER: usize = 8;
/// The sender of a datagram without one: there is none on sockets of this kind.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// SO_BINDTOIFINDEX of `asm-generic/socket.h`.
const SO_BINDTOIFINDEX: i32 = 62;
/// Of `linux/in6.h`.
const IPV6_MULTICAST_ALL: i32 = 29;

/// Which version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A channel end's socket.
#[derive(Debug)]
pub struct UdpSocket {
    socket: Arc<OwnedFd>,
    link: Arc<EndLink>,
    /// Of the next datagram sent.
    sequence: u32,
    stamped: bool,
    notes: bool,
    dropped: Option<Dropped>,
}

impl UdpSocket {
    /// A socket that only sends.
    ///
    /// # Errors
    /// When the channel's destination is no group, its message fits no datagram, the interface has
    /// no address of this version of IP, or the system refuses.
    pub fn talker(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
        version: IpVersion,
    ) -> io::Result<Self> {
        let group = group_of(interface, channel, version)?;
        let socket = open(interface, version)?;
        let class = i32::from(channel.pcp & 7) << 5;
        let one: i32 = 1;
        match version {
            IpVersion::V4 => {
                option::set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, &one)?;
                option::set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, &one)?;
                option::set(&socket, libc::IPPROTO_IP, libc::IP_TOS, &class)?;
            }
            IpVersion::V6 => {
                let ip = libc::IPPROTO_IPV6;
                option::set(&socket, ip, libc::IPV6_MULTICAST_HOPS, &one)?;
                option::set(&socket, ip, libc::IPV6_MULTICAST_LOOP, &one)?;
                option::set(&socket, ip, libc::IPV6_TCLASS, &class)?;
            }
        }
        // After IP_TOS, which sets it too.
        socket::prioritise(&socket, channel.pcp, options)?;
        let launches = socket::let_launch(&socket, interface, options);
        direct(&socket, interface, group)?;
        let notes = options.sent_stamps;
        if notes {
            sent_stamp::note_departures(&socket)?;
        }
        let link = Arc::new(EndLink::new(false, launches));
        let socket = Arc::new(socket);
        Ok(Self { socket, link, sequence: 0, stamped: false, notes, dropped: None })
    }

    /// A socket that receives the channel's datagrams and no others.
    ///
    /// # Errors
    /// As [`UdpSocket::talker`]; an address of its own is not needed.
    pub fn listener(
        interface: &Interface,
        channel: &ChannelParameters,
        options: &InterfaceOptions,
        version: IpVersion,
    ) -> io::Result<Self> {
        let group = group_of(interface, channel, version)?;
        let socket = open(interface, version)?;
        // Before it can receive anything.
        let dropped = filter_datagrams(&socket, channel)?;
        let one: i32 = 1;
        // All readers of all channels have the same port.
        option::set(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, &one)?;
        socket::listen(&socket, options)?;
        // While it is bound to no interface it has nothing of others.
        let none: i32 = 0;
        match version {
            IpVersion::V4 => {
                option::set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, &none)?;
            }
            IpVersion::V6 => {
                option::set(&socket, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, &none)?;
            }
        }
        rustix::net::bind(&socket, &group)?;
        member(&socket, group, interface.index, true)?;
        let (socket, link) = (Arc::new(socket), Arc::default());
        let stamped = options.timestamps;
        Ok(Self { socket, link, sequence: 0, stamped, notes: false, dropped })
    }

    /// Sends the data unit of a tagged frame; with `launch`, so that it leaves at that instant of
    /// CLOCK_TAI. Real-time: one system call, allocates nothing, never waits.
    pub fn send(&mut self, frame: &[u8], launch: Option<i64>) -> io::Result<()> {
        let unit = unit_of(frame).ok_or(io::ErrorKind::InvalidInput)?;
        let sequence = self.sequence.to_be_bytes();
        let parts = [IoSlice::new(&sequence), IoSlice::new(unit)];
        let sent = socket::send(&self.socket, &parts, launch);
        // The number of its message is not used either.
        if !sent.as_ref().is_err_and(presence::is_kept) {
            self.sequence = self.sequence.wrapping_add(1);
        }
        sent
    }

    /// Sends the data units of tagged frames of `length` octets each.
    pub(super) fn send_many(&mut self, frames: &[u8], length: usize) -> (usize, io::Result<()>) {
        let number = |at: usize| self.sequence.wrapping_add(at as u32).to_be_bytes();
        let numbers: [_; AT_ONCE] = std::array::from_fn(number);
        let units = frames.chunks_exact(length).map_while(unit_of);
        let parts = numbers.iter().zip(units);
        let parts = parts.map(|(number, unit)| [IoSlice::new(number), IoSlice::new(unit)]);
        let (taken, sent) = socket::send_many(&self.socket, parts);
        let is_lost = sent.as_ref().is_err_and(|error| !presence::is_kept(error));
        self.sequence = self.sequence.wrapping_add(taken as u32 + u32::from(is_lost));
        (taken, sent)
    }

    /// Takes a data unit if there is one. Real-time: never blocks, allocates nothing.
    pub fn try_receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        self.take(into, libc::MSG_DONTWAIT)
    }

    /// Waits for a data unit, for [`super::LOOK_AGAIN`] or until a signal comes. Real-time: blocks,
    /// allocates nothing.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        self.take(into, 0)
    }

    /// Whether the kernel notes when datagrams leave.
    #[inline]
    pub(super) fn notes(&self) -> bool {
        self.notes
    }

    /// Takes what the kernel noted of a datagram that was sent.
    pub(super) fn sent_stamp(&self) -> Option<SentStamp> {
        sent_stamp::next(&self.socket)
    }

    /// What the kernel has dropped, if it counts that.
    #[inline]
    pub(super) fn counted(&mut self) -> Option<&mut Dropped> {
        self.dropped.as_mut()
    }

    /// Whether the kernel launches datagrams at their time.
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
        let room = into.len();
        let mut encapsulation = [0; ENCAPSULATION];
        let mut parts = [IoSliceMut::new(&mut encapsulation), IoSliceMut::new(into)];
        // A datagram that is longer than the buffer shows its whole length, so that it is not
        // taken for a shorter one.
        // SAFETY: all zeros is a valid `sockaddr_storage`.
        let mut from = unsafe { std::mem::zeroed() };
        let flags = flags | libc::MSG_TRUNC;
        let (got, stamp) = socket::receive(&self.socket, &mut parts, flags, Some(&mut from));
        let Some(length) = socket::unless_none(got)? else { return Ok(None) };
        let length = length.saturating_sub(ENCAPSULATION);
        let length = if length <= room { length } else { 0 };
        let stamp = stamp.filter(|_| self.stamped);
        let number = u32::from_be_bytes(encapsulation);
        let from = socket::address_of(&from).unwrap_or(NOBODY);
        Ok(Some(Arrival { length, framing: Framing::Datagram { from, number }, stamp }))
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The data unit in a tagged frame, without padding.
fn unit_of(frame: &[u8]) -> Option<&[u8]> {
    let (_, unit) = wire::unwrap(frame).ok()?;
    let pdu = Pdu::parse(unit).ok()?;
    Some(&unit[..STREAM_HEADER + pdu.payload.len()])
}

fn open(interface: &Interface, version: IpVersion) -> io::Result<OwnedFd> {
    let family = match version {
        IpVersion::V4 => AddressFamily::INET,
        IpVersion::V6 => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    bind_to(&socket, interface)?;
    Ok(socket)
}

/// Lets a socket that is bound to no interface send and receive by this one only.
fn bind_to(socket: &OwnedFd, interface: &Interface) -> io::Result<()> {
    let index = interface.index as i32;
    option::set(socket, libc::SOL_SOCKET, SO_BINDTOIFINDEX, &index)
}

/// Sends what has no other destination by this interface to the group. The source address and the
/// route are looked up once.
fn direct(socket: &OwnedFd, interface: &Interface, group: SocketAddr) -> io::Result<()> {
    let index = interface.index as i32;
    let version = match group {
        SocketAddr::V4(_) => {
            let through = libc::ip_mreqn {
                imr_multiaddr: libc::in_addr { s_addr: 0 },
                imr_address: libc::in_addr { s_addr: 0 },
                imr_ifindex: index,
            };
            option::set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &through)?;
            IpVersion::V4
        }
        SocketAddr::V6(_) => {
            option::set(socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, &index)?;
            IpVersion::V6
        }
    };
    rustix::net::connect(socket, &group).map_err(|error| no_address(version, error.into()))?;
    if source_of(socket).is_none_or(|source| source.ip().is_unspecified()) {
        return Err(no_address(version, io::ErrorKind::AddrNotAvailable.into()));
    }
    Ok(())
}

/// The address that a talker's socket sends from.
fn source_of(socket: &OwnedFd) -> Option<SocketAddr> {
    rustix::net::getsockname(socket).ok()?.try_into().ok()
}

/// Whether the address that a talker's socket sends from is still one of this host, as far as the
/// system tells.
pub(super) fn has_source(socket: &OwnedFd) -> bool {
    let Some(mut source) = source_of(socket).filter(|source| !source.ip().is_unspecified()) else {
        return false;
    };
    source.set_port(0);
    let family = if source.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let probe = rustix::net::socket_with(family, SocketType::DGRAM, flags, None);
    probe.and_then(|probe| rustix::net::bind(&probe, &source)) != Err(Errno::ADDRNOTAVAIL)
}

/// Takes back to which interface a socket is bound, and to which address it is connected: what a
/// process without CAP_NET_RAW may do, which may not bind it to another one directly.
fn detach(socket: &OwnedFd) -> io::Result<()> {
    Ok(rustix::net::connect_unspec(socket)?)
}

/// Attaches a talker's socket to another interface, or to the one that it was attached to before
/// whose addresses are others. The port stays if it can, by which readers know the talker.
pub(super) fn attach_talker(
    socket: &OwnedFd,
    interface: &Interface,
    channel: &ChannelParameters,
    version: IpVersion,
) -> io::Result<()> {
    let group = group_of(interface, channel, version)?;
    if version == IpVersion::V4 && !device::has_ipv4(interface) {
        return Err(Errno::ADDRNOTAVAIL.into());
    }
    let port = source_of(socket).map_or(0, |source| source.port());
    detach(socket)?;
    bind_to(socket, interface)?;
    let any: IpAddr = match version {
        IpVersion::V4 => Ipv4Addr::UNSPECIFIED.into(),
        IpVersion::V6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Once it was bound so it stays: a second time is refused.
    let _ = rustix::net::bind(socket, &SocketAddr::new(any, port));
    // Without an address yet: it comes later.
    direct(socket, interface, group).map_err(|error| match error.kind() {
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::NetworkUnreachable => {
            Errno::ADDRNOTAVAIL.into()
        }
        _ => error,
    })
}

/// Attaches a listener's socket to another interface than that of the number `before`.
pub(super) fn attach_listener(
    socket: &OwnedFd,
    interface: &Interface,
    channel: &ChannelParameters,
    version: IpVersion,
    before: u32,
) -> io::Result<()> {
    let group = group_of(interface, channel, version)?;
    // A socket has a limited number of memberships, and may have one that the kernel has forgotten,
    // of an interface with the same number.
    for index in [before, interface.index] {
        let _ = member(socket, group, index, false);
    }
    detach(socket)?;
    bind_to(socket, interface)?;
    member(socket, group, interface.index, true)
}

/// Joins or leaves the group on the interface of this number.
fn member(socket: &OwnedFd, group: SocketAddr, index: u32, joins: bool) -> io::Result<()> {
    match group {
        SocketAddr::V4(group) => {
            let membership = libc::ip_mreqn {
                imr_multiaddr: libc::in_addr { s_addr: group.ip().to_bits().to_be() },
                imr_address: libc::in_addr { s_addr: 0 },
                imr_ifindex: index as i32,
            };
            let what = if joins { libc::IP_ADD_MEMBERSHIP } else { libc::IP_DROP_MEMBERSHIP };
            option::set(socket, libc::IPPROTO_IP, what, &membership)
        }
        SocketAddr::V6(group) => {
            let membership = libc::ipv6_mreq {
                ipv6mr_multiaddr: libc::in6_addr { s6_addr: group.ip().octets() },
                ipv6mr_interface: index,
            };
            let what = if joins { libc::IPV6_ADD_MEMBERSHIP } else { libc::IPV6_DROP_MEMBERSHIP };
            option::set(socket, libc::IPPROTO_IPV6, what, &membership)
        }
    }
}

fn no_address(version: IpVersion, error: io::Error) -> io::Error {
    let kind = error.kind();
    match (kind, version) {
        (io::ErrorKind::AddrNotAvailable | io::ErrorKind::NetworkUnreachable, IpVersion::V4) => {
            io::Error::new(kind, "it has no IPv4 address to send from: give it one")
        }
        (io::ErrorKind::AddrNotAvailable | io::ErrorKind::NetworkUnreachable, IpVersion::V6) => {
            let why = "it has no usable IPv6 address to send from: give it one, or wait some \
                       seconds after it came up, until the system has checked that it is unique";
            io::Error::new(kind, why)
        }
        _ => error,
    }
}

/// The group of a channel on an interface.
pub(super) fn group_of(
    interface: &Interface,
    channel: &ChannelParameters,
    version: IpVersion,
) -> io::Result<SocketAddr> {
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let destination = channel.destination;
    if destination.0[0] & 1 == 0 {
        return refuse(format!(
            "the channel's destination {destination} is one station's address, from which no IP \
             group follows: for UDP give it a group address, such as 01:00:5e:00:00:01"
        ));
    }
    let ip_header: usize = match version {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    let headers = ip_header + UDP_HEADER + ENCAPSULATION + STREAM_HEADER;
    let (size, longest) = (
        channel.stream_data_length().get() as usize,
        (interface.mtu as usize).saturating_sub(headers),
    );
    if size > longest {
        let (message, mtu, name) = (channel.size.get(), interface.mtu, &interface.name);
        let needed = size + headers;
        return refuse(match channel.fragments().count {
            1 => format!(
                "a message of {message} octets does not fit into one datagram: with an MTU of \
                 {mtu} octets it may have {}; `ip link set {name} mtu {needed}` allows it",
                longest.saturating_sub(size - message as usize)
            ),
            _ => format!(
                "a message of {message} octets is sent in datagrams that need an MTU of {needed} \
                 octets, and it is {mtu}; `ip link set {name} mtu {needed}` allows it"
            ),
        });
    }
    Ok(match version {
        IpVersion::V4 => SocketAddrV4::new(ipv4_group(destination), PORT).into(),
        IpVersion::V6 => {
            SocketAddrV6::new(ipv6_group(destination), PORT, 0, interface.index).into()
        }
    })
}

/// The IPv4 group of an Ethernet group address.
pub fn ipv4_group(destination: MacAddress) -> Ipv4Addr {
    let [.., x, y, z] = destination.0;
    Ipv4Addr::new(239, x & 0x7f, y, z)
}

/// The IPv6 group of an Ethernet group address.
pub fn ipv6_group(destination: MacAddress) -> Ipv6Addr {
    let [_, _, w, x, y, z] = destination.0;
    let (upper, lower) = (u16::from_be_bytes([w, x]), u16::from_be_bytes([y, z]));
    Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, upper, lower)
}

/// Passes datagrams of this stream; the kernel's filter sees them from the UDP header on.
fn filter_datagrams(socket: &OwnedFd, channel: &ChannelParameters) -> io::Result<Option<Dropped>> {
    let unit = (UDP_HEADER + ENCAPSULATION) as u32;
    filter::attach(socket, Layout { places: &[], unit, may_be_tagged: false }, channel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onbeat_model::time::{Span, SyncedTime};
    use onbeat_model::units::{Octets, StreamId};
    use onbeat_runtime::channel_io::Reason;

    const INTERVAL: Span = Span::from_ms(1);

    fn channel() -> ChannelParameters {
        ChannelParameters {
            destination: MacAddress([1, 0, 0x5e, 0x11, 0x22, 0x33]),
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            stream_id: StreamId(0x1122_3344_5566_7788),
            vlan: 2,
            pcp: 3,
            size: Octets::new(8),
            integrity: Default::default(),
            replicated: false,
            launch: None,
            talker_address: None,
            interval: INTERVAL,
            tolerance: Span::ZERO,
            catch_up: Span::ZERO,
            fixed_delay: Span::from_ms(2),
            clock_error: Span::ZERO,
            epoch: 0,
        }
    }

    #[test]
    fn groups_map_back_onto_the_ethernet_addresses_of_ip_multicast() {
        for address in [[1, 0, 0x5e, 0x7f, 0xff, 0xfe], [1, 0, 0x5e, 1, 0x11, 0x42]] {
            let [_, x, y, z] = ipv4_group(MacAddress(address)).octets();
            assert_eq!([1, 0, 0x5e, x & 0x7f, y, z], address);
        }
        let of_another_block = ipv4_group(MacAddress([0x91, 0xe0, 0xf0, 0xff, 2, 3]));
        assert_eq!(of_another_block.to_string(), "239.127.2.3");
        let address = MacAddress([0x33, 0x33, 0xff, 1, 2, 3]);
        assert_eq!(ipv6_group(address).to_string(), "ff15::ff01:203");
    }

    #[test]
    fn what_fits_no_datagram_or_has_no_group_is_refused_with_what_to_do() {
        let interface = Interface::named("lo").expect("every namespace has it");
        let interface = Interface { mtu: 1_500, ..interface };
        for (version, longest) in [(IpVersion::V4, 1_444), (IpVersion::V6, 1_424)] {
            let fits = ChannelParameters { size: Octets::new(longest), ..channel() };
            assert!(group_of(&interface, &fits, version).is_ok());
            let too_long = ChannelParameters { size: Octets::new(longest + 1), ..channel() };
            let error = group_of(&interface, &too_long, version).expect_err("too long");
            assert!(error.to_string().contains(&longest.to_string()), "{error}");
            let destination = MacAddress([2, 0, 0, 0, 0, 1]);
            let unicast = ChannelParameters { destination, ..channel() };
            let error = group_of(&interface, &unicast, version).expect_err("unicast");
            assert!(error.to_string().contains("02:00:00:00:00:01 is one station's"), "{error}");
        }
    }

    /// The kernel runs the filter: on a datagram socket of the loopback.
    #[test]
    fn the_kernels_filter_passes_data_units_of_the_stream_and_nothing_else() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let to = receiver.local_addr().expect("its address");
        let descriptor = OwnedFd::from(receiver);
        let dropped = filter_datagrams(&descriptor, &channel()).expect("a filter");
        let (socket, link) = (Arc::new(descriptor), Arc::default());
        let mut receiver =
            UdpSocket { socket, link, sequence: 0, stamped: false, notes: false, dropped };
        let mut talker = onbeat_runtime::talker::Talker::new(channel());
        talker.write(SyncedTime::ZERO, &[9; 8], false).expect("the first");
        let unit = &talker.frame()[wire::TAGGED..wire::TAGGED + STREAM_HEADER + 8];
        let good = [&[0, 0, 0, 1], unit].concat();
        let send = |octets: &[u8]| sender.send_to(octets, to).expect("the loopback");
        for at in [ENCAPSULATION, ENCAPSULATION + 4, ENCAPSULATION + 11] {
            let mut foreign = good.clone();
            foreign[at] ^= 1;
            send(&foreign);
        }
        for length in 0..ENCAPSULATION + 12 {
            send(&good[..length]);
        }
        send(&good);
        let mut into = [0; 64];
        let arrival = receiver.receive(&mut into).expect("a receive").expect("the good one");
        let from = sender.local_addr().expect("its address");
        assert_eq!(arrival.framing, Framing::Datagram { from, number: 1 });
        assert_eq!(&into[..arrival.length], unit);
        assert_eq!(receiver.try_receive(&mut into).expect("a receive"), None);
        // Of those that are of the stream one was of another subtype.
        if let Some(dropped) = receiver.counted() {
            assert!(dropped.is_news());
            assert_eq!((dropped.since(Reason::Shape), dropped.since(Reason::Size)), (1, 0));
            assert!(!dropped.is_news());
        }
    }
}
