//! A port's way to its link for MSRP and MVRP: a packet socket that gets their frames only.

use crate::interface::{Interface, option, packet};
use onbeat_runtime::mrp::{MrpApplication, frame, pdu_of};
use onbeat_runtime::msrp::Msrp;
use onbeat_runtime::mvrp::Mvrp;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::io;

/// The longest frame that is received, in octets.
pub const MRP_FRAME_MAX: usize = 1_514;

/// A PDU that came, without Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MrpPdu<'a> {
    /// Of MSRP.
    Msrp(&'a [u8]),
    /// Of MVRP.
    Mvrp(&'a [u8]),
    /// Neither's: it went to another address.
    Other,
}

/// The socket. Not for real-time paths.
#[derive(Debug)]
pub struct MrpSocket {
    interface: Interface,
    socket: OwnedFd,
}

impl MrpSocket {
    /// Opens an interface for both.
    ///
    /// # Errors
    /// There is no such interface, or this process may not open packet sockets.
    pub fn open(name: &str) -> io::Result<Self> {
        let interface = Interface::named(name)?;
        let socket = packet::open()?;
        packet::only_ethertypes(&socket, [Msrp::ETHERTYPE, Mvrp::ETHERTYPE])?;
        let one: i32 = 1;
        option::set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one)?;
        packet::join(&socket, &interface, Msrp::DESTINATION)?;
        packet::join(&socket, &interface, Mvrp::DESTINATION)?;
        // A port of a Linux bridge: only sockets of all protocols see what the bridge takes.
        packet::bind(&socket, &interface, libc::ETH_P_ALL as u16)?;
        Ok(Self { interface, socket })
    }

    /// The interface, as it was when it was opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Whether its link works now.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn is_up(&self) -> io::Result<bool> {
        let now = Interface::named(&self.interface.name)?;
        if now.index != self.interface.index {
            return Err(Errno::NODEV.into());
        }
        Ok(now.up && now.running)
    }

    /// Sends a PDU of an application. What the interface does not take is lost, as on a wire: MRP
    /// says it again.
    pub fn send<A: MrpApplication>(&self, pdu: &[u8]) {
        let octets = frame::<A>(self.interface.address, pdu);
        let _ = rustix::net::send(&self.socket, &octets, SendFlags::DONTWAIT);
    }

    /// Takes a frame if there is one.
    ///
    /// # Errors
    /// The kernel's, but for that the interface is down.
    pub fn try_receive<'a>(
        &self,
        into: &'a mut [u8; MRP_FRAME_MAX],
    ) -> io::Result<Option<MrpPdu<'a>>> {
        let length = match rustix::net::recv(&self.socket, &mut into[..], RecvFlags::DONTWAIT) {
            Ok((length, _)) => length.min(MRP_FRAME_MAX),
            Err(Errno::AGAIN | Errno::INTR | Errno::NETDOWN) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let octets = &into[..length];
        let msrp = pdu_of::<Msrp>(octets).map(MrpPdu::Msrp);
        let mvrp = || pdu_of::<Mvrp>(octets).map(MrpPdu::Mvrp);
        Ok(Some(msrp.or_else(mvrp).unwrap_or(MrpPdu::Other)))
    }
}

impl AsFd for MrpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
