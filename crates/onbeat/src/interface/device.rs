//! A network interface as the system knows it, asked for with ioctls: these follow the network
//! namespace of the calling thread, which /sys does not.

use onbeat_model::units::MacAddress;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::Ipv6Addr;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its address: the source of its frames.
    pub address: MacAddress,
    /// The longest payload of its frames in octets.
    pub mtu: u32,
    /// Whether it is up.
    pub up: bool,
    /// Whether something is at the other end of its cable.
    pub running: bool,
    /// Whether it is a VLAN interface, which tags what it sends by itself.
    pub tags: bool,
    /// Whether it is the loopback: what leaves comes in.
    pub loopback: bool,
}

impl Interface {
    /// Looks an interface up.
    pub fn named(name: &str) -> io::Result<Self> {
        let mut request = Request::new(name)?;
        let index = request.ask(libc::SIOCGIFINDEX, |r| {
            // SAFETY: SIOCGIFINDEX fills this field.
            unsafe { r.ifr_ifru.ifru_ifindex }
        })?;
        let octets = request.ask(libc::SIOCGIFHWADDR, |r| {
            // SAFETY: SIOCGIFHWADDR fills this field.
            unsafe { r.ifr_ifru.ifru_hwaddr.sa_data }
        })?;
        let mtu = request.ask(libc::SIOCGIFMTU, |r| {
            // SAFETY: SIOCGIFMTU fills this field.
            unsafe { r.ifr_ifru.ifru_mtu }
        })?;
        let flags = request.ask(libc::SIOCGIFFLAGS, |r| {
            // SAFETY: SIOCGIFFLAGS fills this field.
            unsafe { r.ifr_ifru.ifru_flags }
        })?;
        let mut address = MacAddress::default();
        for (to, from) in address.0.iter_mut().zip(octets) {
            *to = from as u8;
        }
        Ok(Self {
            name: name.to_owned(),
            index: index as u32,
            address,
            mtu: mtu as u32,
            up: i32::from(flags) & libc::IFF_UP != 0,
            running: i32::from(flags) & libc::IFF_RUNNING != 0,
            tags: ask_vlan(&request.socket, name, GET_VLAN_VID).is_some(),
            loopback: i32::from(flags) & libc::IFF_LOOPBACK != 0,
        })
    }
}

/// What `linux/if_vlan.h` has for the question whether an interface is a VLAN one.
#[repr(C)]
struct VlanRequest {
    command: i32,
    device: [u8; 24],
    answer: [u8; 24],
    quality: i16,
}

/// GET_VLAN_REALDEV_NAME_CMD and GET_VLAN_VID_CMD.
const GET_VLAN_REALDEV_NAME: i32 = 8;
const GET_VLAN_VID: i32 = 9;

/// What a VLAN interface answers; `None` of other interfaces, and a kernel without these has none.
fn ask_vlan(socket: &OwnedFd, name: &str, command: i32) -> Option<[u8; 24]> {
    let mut request = VlanRequest { command, device: [0; 24], answer: [0; 24], quality: 0 };
    for (to, from) in request.device.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: SIOCGIFVLAN reads and writes a structure of this layout.
    let got = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIFVLAN, &raw mut request) };
    (got == 0).then_some(request.answer)
}

/// The interface that a VLAN interface is on, and its VLAN, from what it answers.
fn vlan_of(name: [u8; 24], vid: [u8; 24]) -> Option<(String, u16)> {
    let name = name.split(|octet| *octet == 0).next().unwrap_or_default();
    let [a, b, c, d, ..] = vid;
    let vid = u16::try_from(i32::from_ne_bytes([a, b, c, d])).ok()?;
    Some((std::str::from_utf8(name).ok()?.to_owned(), vid))
}

/// The address of a line of `/proc/net/if_inet6`, if it is a link-local one of an interface:
/// address, and as hexadecimal numbers the interface, the length of the prefix, the scope, flags.
fn link_local(line: &str, index: u32) -> Option<Ipv6Addr> {
    let mut fields = line.split_whitespace();
    let bits = u128::from_str_radix(fields.next()?, 16).ok()?;
    let is_its = u32::from_str_radix(fields.next()?, 16) == Ok(index);
    let address = Ipv6Addr::from_bits(bits);
    (is_its && address.is_unicast_link_local()).then_some(address)
}

/// `linux/sockios.h`.
const SIOCGIFVLAN: u64 = 0x8982;

impl Interface {
    /// Its link-local IPv6 address, if it has one (proc(5), /proc/net/if_inet6): in the network
    /// namespace of this process's main thread.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        let addresses = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
        addresses.lines().find_map(|line| link_local(line, self.index))
    }

    /// Of a VLAN interface: the interface that it is on, and its VLAN.
    pub fn vlan(&self) -> Option<(String, u16)> {
        let request = Request::new(&self.name).ok()?;
        let name = ask_vlan(&request.socket, &self.name, GET_VLAN_REALDEV_NAME)?;
        vlan_of(name, ask_vlan(&request.socket, &self.name, GET_VLAN_VID)?)
    }

    /// The number of its PTP hardware clock, `/dev/ptp` and that number; `None` if it has none.
    pub fn hardware_clock(&self) -> io::Result<Option<u32>> {
        let mut info = TimestampingInfo { cmd: ETHTOOL_GET_TS_INFO, ..Default::default() };
        let mut request = Request::new(&self.name)?;
        request.request.ifr_ifru.ifru_data = (&raw mut info).cast();
        match request.ask(libc::SIOCETHTOOL, |_| ()) {
            Ok(()) => Ok(u32::try_from(info.phc_index).ok()),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// ETHTOOL_GET_TS_INFO and what it fills in (`linux/ethtool.h`).
const ETHTOOL_GET_TS_INFO: u32 = 0x41;

#[derive(Default)]
#[repr(C)]
struct TimestampingInfo {
    cmd: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// `struct ethtool_channels` of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

/// How many receive queues an interface has. Not all drivers say it.
pub(super) fn receive_queues(name: &str) -> io::Result<u32> {
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    let mut request = Request::new(name)?;
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
    request.request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    request.ask(libc::SIOCETHTOOL, |_| ())?;
    Ok(channels.receive + channels.combined)
}

/// Asks the driver over the ethtool ioctl (`linux/ethtool.h`): `words` is the structure of a
/// command, which is its first word.
///
/// # Errors
/// There is no such interface, or its driver knows no such command.
///
/// # Safety
/// The kernel reads and writes the command's structure: `words` must be no shorter.
pub unsafe fn ethtool<const WORDS: usize>(
    interface: &str,
    words: &mut [u32; WORDS],
) -> io::Result<()> {
    let mut request = Request::new(interface)?;
    request.request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    request.ask(libc::SIOCETHTOOL, |_| ())
}

/// Whether something is at the other end of the cable, as the driver says it now.
pub(super) fn has_carrier(interface: &Interface) -> bool {
    /// ETHTOOL_GLINK.
    const GET_LINK: u32 = 0x0a;
    let mut words = [GET_LINK, 0];
    // SAFETY: the command's structure is two words.
    let asked = unsafe { ethtool(&interface.name, &mut words) };
    // Drivers that do not say it have nothing that could be missing.
    asked.map_or(interface.running, |()| words[1] != 0)
}

/// Whether an interface has an IPv4 address of its own.
pub(super) fn has_ipv4(interface: &Interface) -> bool {
    let request = Request::new(&interface.name);
    request.and_then(|mut request| request.ask(libc::SIOCGIFADDR, |_| ())).is_ok()
}

/// An interface request with its name filled in.
struct Request {
    socket: OwnedFd,
    request: libc::ifreq,
}

impl Request {
    fn new(name: &str) -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // SAFETY: all zeros is a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let room = request.ifr_name.len() - 1;
        if name.is_empty() || name.len() > room || name.contains('\0') {
            return Err(io::ErrorKind::NotFound.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        Ok(Self { socket, request })
    }

    fn ask<T>(&mut self, what: u64, answer: impl Fn(&libc::ifreq) -> T) -> io::Result<T> {
        // SAFETY: the requests used here read the name and fill the union of this `ifreq`, or what
        // it points to, which outlives the call.
        let got = unsafe { libc::ioctl(self.socket.as_raw_fd(), what, &raw mut self.request) };
        if got == 0 { Ok(answer(&self.request)) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_vlan_interface_answers_is_its_parent_and_its_vlan() {
        let mut name = [0; 24];
        name[..6].copy_from_slice(b"enp2s0");
        let mut vid = [0; 24];
        vid[..4].copy_from_slice(&2_i32.to_ne_bytes());
        assert_eq!(vlan_of(name, vid), Some(("enp2s0".to_owned(), 2)));
        vid[..4].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(vlan_of(name, vid), None);
        assert_eq!(Interface::named("lo").expect("every namespace has it").vlan(), None);
    }

    #[test]
    fn the_loopback_is_found_and_what_is_not_there_is_not() {
        let loopback = Interface::named("lo").expect("every namespace has it");
        assert!(loopback.index > 0 && loopback.mtu >= 1_500);
        for name in ["", "no-such-if", "a-name-that-is-too-long-for-linux", "a\0b"] {
            assert!(Interface::named(name).is_err(), "{name:?}");
        }
    }
}
