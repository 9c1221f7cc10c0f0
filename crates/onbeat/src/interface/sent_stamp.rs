//! When frames left, as the kernel noted it: it puts a note per frame into the socket's error queue
//! (Documentation/networking/timestamping.rst of the kernel, sections 1.3 and 2.1).

use crate::interface::socket::uncancelled;
use crate::interface::{Stamp, option};
use onbeat_runtime::channel_io::TransmitPoint;
use rustix::fd::OwnedFd;
use std::io;

/// Room for the control messages of a note: time stamps of 48 octets, its frame's number with an
/// address of up to 48, and their headers.
#[repr(C, align(8))]
struct Control([u8; 256]);

/// A note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentStamp {
    /// The frame's number: how many this socket had sent before.
    pub(super) number: u32,
    /// Where the frame was.
    pub(super) point: TransmitPoint,
    /// When.
    pub(super) at: Stamp,
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

/// Lets the kernel note when frames get into its queues, and when their drivers take them. Hardware
/// is not asked: it would replace the kernel's note by one of its own clock, and has few places for
/// stamps, which ptp4l needs.
pub(super) fn note_departures(socket: &OwnedFd) -> io::Result<()> {
    let wanted = libc::SOF_TIMESTAMPING_TX_SCHED
        | libc::SOF_TIMESTAMPING_TX_SOFTWARE
        | libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &wanted)
}

/// Takes the next note of a frame from the queue, if there is one. Real-time: a system call each.
pub(super) fn next(socket: &OwnedFd) -> Option<SentStamp> {
    loop {
        if let Some(note) = take(socket).ok()?? {
            return Some(note);
        }
    }
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
    let got = unsafe { uncancelled::recvmsg(socket, &mut message, flags) };
    if got < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    let (mut frame, mut at) = (None, Stamp::default());
    // SAFETY: the kernel has filled in the control messages and their length.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: not null, so a header in the control memory.
        let header = unsafe { &*next };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                // SAFETY: a message of this type carries three `timespec`: software's, one that is
                // not used any more, the hardware's.
                let stamps: [libc::timespec; 3] =
                    unsafe { libc::CMSG_DATA(next).cast::<[_; 3]>().read_unaligned() };
                let [software, _, hardware] = stamps.map(noted);
                at = Stamp { hardware, software, monotonic: None };
            }
            (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP)
            | (libc::SOL_IP, libc::IP_RECVERR)
            | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                // SAFETY: a message of these types begins with this structure.
                let note: libc::sock_extended_err = unsafe {
                    libc::CMSG_DATA(next).cast::<libc::sock_extended_err>().read_unaligned()
                };
                let ours = note.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
                frame = point(note.ee_info).filter(|_| ours).map(|point| (note.ee_data, point));
            }
            _ => {}
        }
        // SAFETY: `next` is a header of this message.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
    }
    let is_noted = at.software.or(at.hardware).is_some();
    let frame = frame.filter(|_| is_noted);
    Ok(Some(frame.map(|(number, point)| SentStamp { number, point, at })))
}

fn noted(at: libc::timespec) -> Option<i64> {
    Some(at.tv_sec * 1_000_000_000 + at.tv_nsec).filter(|ns| *ns != 0)
}

/// Where a frame was that a note is about (`SCM_TSTAMP_SND`, `SCM_TSTAMP_SCHED` of
/// linux/errqueue.h).
fn point(info: u32) -> Option<TransmitPoint> {
    match info {
        0 => Some(TransmitPoint::Interface),
        1 => Some(TransmitPoint::Queue),
        _ => None,
    }
}

/// Which message each note is of. The kernel counts the frames that it gets, some of which it then
/// does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbering {
    /// How many frames each message has.
    frames: u64,
    /// A frame's number in the kernel's count, and in the talker's.
    known: Option<(u32, u64)>,
}

impl Numbering {
    /// Of a channel whose messages have so many frames.
    pub(super) fn new(frames: u32) -> Self {
        Self { frames: frames.into(), known: None }
    }

    /// The message that a note is of; `last` is the one sent last. A frame gets into the queues
    /// within the call that sends it, so that the latest one there is the last message's.
    pub(super) fn sequence(&mut self, note: &SentStamp, last: u64) -> Option<u64> {
        if note.point == TransmitPoint::Queue {
            let expected = self.known.map(|(first, of)| (note.number.wrapping_sub(first), of));
            let is_of = |(since, of)| (of + u64::from(since)) / self.frames == last;
            if !expected.is_some_and(is_of) {
                self.known = Some((note.number, last * self.frames));
            }
            return Some(last);
        }
        let (first, of) = self.known?;
        // Those before the first are of a count that is not known any more.
        let since = note.number.wrapping_sub(first);
        (since < 1 << 31).then(|| (of + u64::from(since)) / self.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_of_the_messages_that_the_kernel_took() {
        let note = |number, point| SentStamp { number, point, at: Stamp::default() };
        let queue = |number| note(number, TransmitPoint::Queue);
        let left = |number| note(number, TransmitPoint::Interface);
        let mut numbering = Numbering::new(1);
        assert_eq!(numbering.sequence(&left(0), 0), None, "nothing is known yet");
        assert_eq!(numbering.sequence(&queue(0), 0), Some(0));
        assert_eq!(numbering.sequence(&queue(1), 1), Some(1));
        assert_eq!(numbering.sequence(&left(0), 1), Some(0), "it had to wait");
        // The frame of message 2 was not even counted.
        assert_eq!(numbering.sequence(&queue(2), 3), Some(3));
        assert_eq!(numbering.sequence(&left(1), 3), None, "of the earlier count");
        assert_eq!(numbering.sequence(&left(2), 3), Some(3));
        // The kernel's count turns over.
        let mut numbering = Numbering::new(1);
        assert_eq!(numbering.sequence(&queue(u32::MAX), 7), Some(7));
        assert_eq!(numbering.sequence(&queue(0), 8), Some(8));
        assert_eq!(numbering.sequence(&left(u32::MAX), 8), Some(7));
        assert_eq!(numbering.sequence(&left(0), 8), Some(8));
    }
    #[test]
    fn notes_of_fragments_are_of_their_message() {
        let note = |number, point| SentStamp { number, point, at: Stamp::default() };
        let mut numbering = Numbering::new(3);
        for message in 0..3 {
            for frame in message * 3..message * 3 + 3 {
                let queued = note(frame, TransmitPoint::Queue);
                assert_eq!(numbering.sequence(&queued, message.into()), Some(message.into()));
            }
            // They leave later, some when the next message is in the queue.
            for frame in (message * 3).saturating_sub(1)..message * 3 + 2 {
                let left = note(frame, TransmitPoint::Interface);
                let of = u64::from(frame / 3);
                assert_eq!(numbering.sequence(&left, message.into()), Some(of), "{frame}");
            }
        }
    }
}
