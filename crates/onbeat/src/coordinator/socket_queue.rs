//! The receive queue of a listener whose frames come through a socket of its own: from the
//! coordinator in emulated real time, or from its host's station. It follows the rule of
//! [`onbeat_runtime::queue`]: a socket that is full keeps what is old, so whoever sends holds the
//! reader's side too, and takes the oldest message out of it.

use crate::coordinator::protocol::MAX_PACKET;
use crate::coordinator::socket;
use onbeat_runtime::queue::CAPACITY;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt;
use std::io::{self, IoSlice};

/// What it takes to keep the rule at a reader's socket.
#[derive(Debug)]
pub struct SocketQueue {
    /// The reader's side.
    theirs: OwnedFd,
    unit: PacketUnit,
}

/// What the kernel counts for one message; all of a channel have one size.
#[derive(Clone, Copy, Debug)]
pub struct PacketUnit(usize);

impl SocketQueue {
    /// For packets of `octets` from `ours` to `theirs`, between which nothing has passed yet. Where
    /// the system grants less memory than [`CAPACITY`] messages take, fewer wait.
    ///
    /// # Errors
    /// The kernel's, or something has passed.
    pub fn new(ours: &OwnedFd, theirs: BorrowedFd<'_>, octets: usize) -> io::Result<Self> {
        let unit = PacketUnit::new(ours, theirs, octets)?;
        Ok(Self { theirs: theirs.try_clone_to_owned()?, unit })
    }

    /// Sends a packet; `dropped` gets those that had to go for it. Real-time: some system calls,
    /// allocates nothing.
    ///
    /// # Errors
    /// The reader is gone.
    pub fn push(
        &self,
        ours: &OwnedFd,
        parts: &[IoSlice<'_>],
        dropped: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.unit.push([ours, &self.theirs], parts, dropped)
    }
}

impl PacketUnit {
    /// Finds it out, and gives the sockets room; as [`SocketQueue::new`].
    pub(crate) fn new(ours: &OwnedFd, theirs: BorrowedFd<'_>, octets: usize) -> io::Result<Self> {
        let mut packet = [0; MAX_PACKET];
        let none = io::ErrorKind::InvalidData;
        if !socket::try_send(ours, &[IoSlice::new(&packet[..octets])])? {
            return Err(none.into());
        }
        let unit = unread(ours)?;
        socket::try_receive(theirs, &mut packet)?.filter(|got| *got == octets).ok_or(none)?;
        let wanted = unit * (CAPACITY + 1);
        sockopt::set_socket_send_buffer_size_force(ours, wanted)
            .or_else(|_| sockopt::set_socket_send_buffer_size(ours, wanted))?;
        Ok(Self(unit))
    }

    /// As [`SocketQueue::push`], from the first socket to the second.
    pub(crate) fn push(
        self,
        [ours, theirs]: [&OwnedFd; 2],
        parts: &[IoSlice<'_>],
        mut dropped: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut packet = [0; MAX_PACKET];
        // The reader takes messages at the same time: then there is room, and nothing to drop.
        for _ in 0..2 * CAPACITY {
            if unread(ours)? < CAPACITY * self.0 && socket::try_send(ours, parts)? {
                return Ok(());
            }
            match socket::try_receive(theirs, &mut packet) {
                Ok(Some(length)) => dropped(&packet[..length]),
                Ok(None) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// How much of what was sent was not received yet, as the kernel counts memory.
fn unread(ours: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: `count` is valid for writing an `int`, which SIOCOUTQ (the same number) gives.
    let got = unsafe { libc::ioctl(ours.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_socket_gives_its_oldest_messages_for_new_ones() {
        let (theirs, ours) = socket::pair().expect("a pair");
        let queue = SocketQueue::new(&ours, theirs.as_fd(), 84).expect("a queue");
        let sent = 2_000_u32;
        let mut packet = [0; 84];
        let mut dropped = Vec::new();
        for number in 0..sent {
            packet[..4].copy_from_slice(&number.to_le_bytes());
            let gone = |packet: &[u8]| dropped.push(packet[..4].try_into().expect("four"));
            queue.push(&ours, &[IoSlice::new(&packet)], gone).expect("sent");
        }
        let mut left = Vec::new();
        while let Ok(Some(84)) = socket::try_receive(&theirs, &mut packet) {
            left.push(packet[..4].try_into().expect("four"));
        }
        // Less is granted to a process without privileges.
        assert!(left.len() <= CAPACITY && left.len() > CAPACITY / 8, "{}", left.len());
        let all = dropped.iter().chain(&left).map(|n| u32::from_le_bytes(*n));
        assert!(all.eq(0..sent), "the oldest are dropped, and each is in one of the two");
    }
}
