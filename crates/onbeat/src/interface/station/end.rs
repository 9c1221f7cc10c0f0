//! A program's way to the station of its host.

use crate::coordinator::client::STAMP;
use crate::coordinator::protocol::MAX_PACKET;
use crate::coordinator::socket;
use crate::interface::{Arrival, LOOK_AGAIN, Stamp};
use onbeat_runtime::channel_io::Framing;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::{self, IoSlice};

/// An end of a channel at a station, which sends and receives for it.
#[derive(Debug)]
pub struct StationSocket {
    socket: OwnedFd,
    /// To the service that gave the end, if one did: while it is open, this has the end.
    _connection: Option<OwnedFd>,
    packet: Box<[u8; MAX_PACKET]>,
}

impl StationSocket {
    /// Over the socket that a station's [`StationDoor`](super::StationDoor) gives.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, _connection: None, packet: Box::new([0; MAX_PACKET]) }
    }

    /// The same of one that a service gave.
    pub(super) fn of_service(socket: OwnedFd, connection: OwnedFd) -> Self {
        Self { _connection: Some(connection), ..Self::new(socket) }
    }

    /// Hands a frame to the station. Real-time: one system call, allocates nothing.
    pub(in crate::interface) fn send(&self, frame: &[u8]) -> io::Result<()> {
        match socket::try_send(&self.socket, &[IoSlice::new(frame)])? {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Takes a frame if there is one. Real-time: never blocks, allocates nothing.
    pub(in crate::interface) fn try_receive(
        &mut self,
        into: &mut [u8],
    ) -> io::Result<Option<Arrival>> {
        let length = match socket::try_receive(&self.socket, &mut self.packet[..]) {
            Ok(Some(length)) => length,
            // The station has ended.
            Ok(None) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let packet = self.packet.get(..length).ok_or_else(wrong)?;
        let (stamp, frame) = packet.split_first_chunk::<STAMP>().ok_or_else(wrong)?;
        into.get_mut(..frame.len()).ok_or_else(wrong)?.copy_from_slice(frame);
        let stamp = Stamp { monotonic: Some(i64::from_le_bytes(*stamp)), ..Stamp::default() };
        Ok(Some(Arrival { length: frame.len(), framing: Framing::Ethernet, stamp: Some(stamp) }))
    }

    /// Waits for a frame for about [`LOOK_AGAIN`]; `None` also when a signal came.
    pub(in crate::interface) fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrival>> {
        match socket::readable(&self.socket, LOOK_AGAIN)? {
            true => self.try_receive(into),
            false => Ok(None),
        }
    }
}

impl AsFd for StationSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
