//! What the sockets of several transports do alike.

use crate::interface::{Interface, InterfaceOptions, LOOK_AGAIN, Stamp, launch, option, stamping};
use arrayvec::ArrayVec;
use onbeat_runtime::batch::AT_ONCE;
use rustix::fd::{AsFd, OwnedFd};
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

/// System calls that are no cancellation points of POSIX, as the C library's are: a thread that is
/// cancelled ends outside of this library, where it can clear up. So does every other call on the
/// way of a message, which rustix makes itself.
pub(super) mod uncancelled {
    use rustix::fd::{AsRawFd, OwnedFd};

    /// # Safety
    /// The message's pointers are valid for writing the lengths beside them.
    pub(in crate::interface) unsafe fn recvmsg(
        socket: &OwnedFd,
        message: &mut libc::msghdr,
        flags: i32,
    ) -> libc::c_long {
        let message: *mut libc::msghdr = message;
        // SAFETY: the caller's promise.
        unsafe { libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), message, flags) }
    }

    /// # Safety
    /// The message's pointers are valid for reading the lengths beside them.
    pub(in crate::interface) unsafe fn sendmsg(
        socket: &OwnedFd,
        message: &libc::msghdr,
        flags: i32,
    ) -> libc::c_long {
        let message: *const libc::msghdr = message;
        // SAFETY: the caller's promise.
        unsafe { libc::syscall(libc::SYS_sendmsg, socket.as_raw_fd(), message, flags) }
    }

    /// # Safety
    /// The messages' pointers are valid for reading the lengths beside them.
    pub(in crate::interface) unsafe fn sendmmsg(
        socket: &OwnedFd,
        messages: &mut [libc::mmsghdr],
        flags: i32,
    ) -> libc::c_long {
        let (first, count) = (messages.as_mut_ptr(), messages.len());
        // SAFETY: the caller's promise; the kernel writes lengths into the messages.
        unsafe { libc::syscall(libc::SYS_sendmmsg, socket.as_raw_fd(), first, count, flags) }
    }
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
    let got = unsafe { uncancelled::recvmsg(socket, &mut message, flags) };
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
    let got = unsafe { uncancelled::sendmsg(socket, &message, flags) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends up to [`AT_ONCE`] messages of two parts, the first perhaps empty, in order: how many the
/// kernel took, and why not the next one. It says why when that one is the first it is asked for:
/// so that one is tried a second time, and sent if it can be by then.
pub(super) fn send_many<'a>(
    socket: &OwnedFd,
    messages: impl Iterator<Item = [IoSlice<'a>; 2]>,
) -> (usize, io::Result<()>) {
    let parts: ArrayVec<[IoSlice<'a>; 2], AT_ONCE> = messages.collect();
    let header = |parts: &[IoSlice<'a>; 2]| {
        // SAFETY: all zeros is a valid `mmsghdr`.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        // An empty one costs as much as another.
        let parts = &parts[usize::from(parts[0].is_empty())..];
        // `IoSlice` is guaranteed to have the layout of `iovec`; sending does not write to it.
        header.msg_hdr.msg_iov = parts.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = parts.len();
        header
    };
    let mut headers: ArrayVec<libc::mmsghdr, AT_ONCE> = parts.iter().map(header).collect();
    let mut sent = 0;
    while sent < headers.len() {
        // A full queue must not make a task wait: that frame is lost, and the task is told.
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: each message points to its parts, which live as long as `parts`.
        match unsafe { uncancelled::sendmmsg(socket, &mut headers[sent..], flags) } {
            0 => return (sent, Err(io::ErrorKind::WouldBlock.into())),
            taken if taken > 0 => sent += taken as usize,
            _ => return (sent, Err(io::Error::last_os_error())),
        }
    }
    (sent, Ok(()))
}
