//! When frames left, as the kernel noted it: it puts a note per frame into the socket's error queue
//! (Documentation/networking/timestamping.rst of the kernel, sections 1.3 and 2.1).

use crate::interface::option;
use rustix::fd::{AsRawFd, OwnedFd};
use std::io;

/// Room for the control messages of a note: a time stamp of 48 octets, its frame's number of 16,
/// and their headers.
#[repr(C, align(8))]
struct Control([u8; 256]);

/// A note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentStamp {
    /// The frame's number: how many this socket had sent before.
    pub(super) number: u32,
    /// When it left, in nanoseconds of CLOCK_REALTIME.
    pub(super) at: i64,
}

/// Lets the kernel note when frames come and leave; the latter are counted from 0 on, again with
/// each call.
pub(super) fn note_both_ways(socket: &OwnedFd) -> io::Result<()> {
    let none: u32 = 0;
    option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &none)?;
    let wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE
        | libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &wanted)
}

/// Takes a note from the queue. `Some(None)`: one that is about something else.
pub(super) fn take(socket: &OwnedFd) -> io::Result<Option<Option<SentStamp>>> {
    let mut control = Control([0; 256]);
    // SAFETY: all zeros is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the message has no room for data, and its control memory is valid for writing.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    if got < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    let (mut number, mut at) = (None, None);
    // SAFETY: the kernel has filled in the control messages and their length.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: not null, so a header in the control memory.
        let header = unsafe { &*next };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                // SAFETY: a message of this type carries three `timespec`; the first is software's.
                let stamp: libc::timespec =
                    unsafe { libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned() };
                at = Some(stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec).filter(|ns| *ns != 0);
            }
            (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) => {
                // SAFETY: a message of this type carries this structure.
                let note: libc::sock_extended_err = unsafe {
                    libc::CMSG_DATA(next).cast::<libc::sock_extended_err>().read_unaligned()
                };
                let ours = note.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
                number = ours.then_some(note.ee_data);
            }
            _ => {}
        }
        // SAFETY: `next` is a header of this message.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    Ok(Some(number.zip(at).map(|(number, at)| SentStamp { number, at })))
}
