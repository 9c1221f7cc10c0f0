//! What the sockets of several transports do alike.

use crate::interface::{Interface, InterfaceOptions, LOOK_AGAIN, Stamp, launch, option, stamping};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// How long a busy-polling receive polls before it blocks, in microseconds.
const BUSY_POLL_US: i32 = 50;

/// Half of what may wait in a socket, in octets as the kernel counts them: more than the queue of
/// the emulated engines holds ([`onbeat_runtime::queue`]), of the longest frames too.
const BUFFER_OCTETS: i32 = 1 << 22;

/// Gives what is sent the priority of the channel's class.
pub(super) fn prioritise(
    socket: &impl AsFd,
    pcp: u8,
    options: &InterfaceOptions,
) -> io::Result<()> {
    let pcp = pcp & 7;
    let priority = options.priorities[usize::from(pcp)].unwrap_or(u32::from(pcp));
    option::set(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority)
}

/// Lets the kernel launch frames at their time, if that is wanted and the interface does it.
pub(super) fn let_launch(
    socket: &OwnedFd,
    interface: &Interface,
    options: &InterfaceOptions,
) -> bool {
    let config = libc::sock_txtime { clockid: libc::CLOCK_TAI, flags: 0 };
    options.launch_time
        && launch::is_honoured(interface).unwrap_or(false)
        && option::set(socket, libc::SOL_SOCKET, libc::SO_TXTIME, &config).is_ok()
}

/// Lets blocking receives poll the driver first.
pub(super) fn busy_poll(socket: &OwnedFd) -> io::Result<()> {
    option::set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &BUSY_POLL_US)
}

/// Sets how a socket receives.
pub(super) fn listen(socket: &OwnedFd, options: &InterfaceOptions) -> io::Result<()> {
    if options.busy_poll {
        busy_poll(socket)?;
    }
    if options.timestamps {
        let wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE
            | libc::SOF_TIMESTAMPING_SOFTWARE
            | libc::SOF_TIMESTAMPING_RX_HARDWARE
            | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &wanted)?;
        stamping::keep();
    }
    // More than the default, where the system lets us: memory is taken for what waits only.
    let _ = option::set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER_OCTETS)
        .or_else(|_| option::set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &BUFFER_OCTETS));
    let patience = libc::timeval { tv_sec: 0, tv_usec: LOOK_AGAIN.as_ns() / 1_000 };
    option::set(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience)
}

/// What a receive gave, `None` if there is nothing yet or a signal came.
pub(super) fn unless_none(got: io::Result<usize>) -> io::Result<Option<usize>> {
    match got {
        Ok(length) => Ok(Some(length)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
            _ => Err(error),
        },
    }
}

/// Room for control messages, aligned as these must be.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Receives, with the instant at which the hardware, or else the kernel, had it if the socket notes
/// that; the sender's address comes into `from`.
pub(super) fn receive(
    socket: &OwnedFd,
    parts: &mut [IoSliceMut<'_>],
    flags: i32,
    from: Option<&mut libc::sockaddr_storage>,
) -> (io::Result<usize>, Option<Stamp>) {
    let mut control = Control([0; 128]);
    // SAFETY: all zeros is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // `IoSliceMut` is guaranteed to have the layout of `iovec`.
    message.msg_iov = parts.as_mut_ptr().cast();
    message.msg_iovlen = parts.len();
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    if let Some(from) = from {
        message.msg_namelen = size_of_val(from) as libc::socklen_t;
        message.msg_name = std::ptr::from_mut(from).cast();
    }
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
    let noted = |t| Some(ns(t)).filter(|ns| *ns != 0);
    let stamp = stamp.map(|[software, _, hardware]| Stamp {
        hardware: noted(hardware),
        software: noted(software),
        monotonic: None,
    });
    (Ok(length), stamp)
}

/// The address that the kernel wrote; none of another family.
pub(super) fn address_of(from: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let from: *const libc::sockaddr_storage = from;
    // SAFETY: any octets are such an address, and the storage is large enough for each.
    unsafe {
        match i32::from((*from).ss_family) {
            libc::AF_INET => {
                let from = &*from.cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from_bits(u32::from_be(from.sin_addr.s_addr));
                Some((ip, u16::from_be(from.sin_port)).into())
            }
            libc::AF_INET6 => {
                let from = &*from.cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from_octets(from.sin6_addr.s6_addr);
                Some((ip, u16::from_be(from.sin6_port)).into())
            }
            _ => None,
        }
    }
}

/// Sends the parts as one; with `launch`, so that it leaves at that instant of CLOCK_TAI.
pub(super) fn send(socket: &OwnedFd, parts: &[IoSlice<'_>], launch: Option<i64>) -> io::Result<()> {
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
