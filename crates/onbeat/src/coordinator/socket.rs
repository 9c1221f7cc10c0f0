//! Pairs of sequenced-packet sockets. They have no name: who was not handed one cannot reach it.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

use crate::clock::timeout;
use onbeat_model::time::Span;

/// The most file descriptors that come with one packet.
const MAX_DESCRIPTORS: usize = 2;

/// No more frames will come; the other side still receives those that were sent.
pub fn end(socket: impl AsFd) {
    // It is closed already: as good.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
}

/// Two sockets joined to each other.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one packet made of `parts`. Real-time: bounded, allocates nothing.
pub fn send(socket: impl AsFd, parts: &[IoSlice<'_>]) -> io::Result<()> {
    let mut none = SendAncillaryBuffer::default();
    loop {
        match rustix::net::sendmsg(&socket, parts, &mut none, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

/// Sends one packet unless the receiver's queue is full; tells which.
pub fn try_send(socket: impl AsFd, parts: &[IoSlice<'_>]) -> io::Result<bool> {
    let mut none = SendAncillaryBuffer::default();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::sendmsg(&socket, parts, &mut none, flags) {
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(true),
    }
}

/// Sends one packet, with file descriptors, unless the receiver's queue is full; tells which.
pub fn try_send_with(
    socket: impl AsFd,
    packet: &[u8],
    with: &[BorrowedFd<'_>],
) -> io::Result<bool> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !with.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(with)), "room for the descriptors");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::sendmsg(socket, &[IoSlice::new(packet)], &mut control, flags) {
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(true),
    }
}

/// Receives one packet, with up to two file descriptors; `None` when the other side is gone.
pub fn receive_with(
    socket: impl AsFd,
    into: &mut [u8],
) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(into)];
    let got = retry_on_intr(|| {
        rustix::net::recvmsg(&socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    Ok((got.bytes > 0).then_some((got.bytes, descriptors)))
}

/// Receives one packet; `None` when the other side is gone. Real-time: allocates nothing.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<Option<usize>> {
    receive_flagged(socket, into, RecvFlags::empty())
}

/// The same, but fails with [`io::ErrorKind::WouldBlock`] when there is none yet.
pub fn try_receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<Option<usize>> {
    receive_flagged(socket, into, RecvFlags::DONTWAIT)
}

fn receive_flagged(
    socket: impl AsFd,
    into: &mut [u8],
    flags: RecvFlags,
) -> io::Result<Option<usize>> {
    loop {
        match rustix::net::recv(&socket, &mut *into, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok((got, _)) => return Ok((got > 0).then_some(got)),
        }
    }
}

/// Whether the other side is gone. What it sent before may still be there.
pub fn is_gone(socket: impl AsFd) -> bool {
    let mut set = [PollFd::new(&socket, PollFlags::empty())];
    let gone = PollFlags::HUP | PollFlags::ERR;
    poll(&mut set, timeout(Span::ZERO).as_ref()).is_ok() && set[0].revents().intersects(gone)
}

/// Waits until there is something to receive, or the other side is gone; `false`: neither within
/// `patience`.
pub fn readable(socket: impl AsFd, patience: Span) -> io::Result<bool> {
    let mut set = [PollFd::new(&socket, PollFlags::IN)];
    match poll(&mut set, timeout(patience).as_ref()) {
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(ready) => Ok(ready > 0),
    }
}
