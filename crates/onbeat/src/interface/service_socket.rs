//! The Unix sockets of a host's services, one message in each packet. Their names are abstract:
//! they belong to the network namespace, as the interfaces do, and leave no file behind.

use crate::coordinator::socket;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, IoSlice};

/// The most programs that wait to be taken.
const BACKLOG: i32 = 64;

fn address(name: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

fn packets(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Connects to the service of a name, if that is the superuser's or this user's: an abstract name
/// is whose process takes it first.
///
/// # Errors
/// There is none ([`io::ErrorKind::ConnectionRefused`]), or it is another user's.
pub(super) fn connect(name: &str) -> io::Result<OwnedFd> {
    let socket = packets(SocketFlags::empty())?;
    rustix::net::connect(&socket, &address(name)?)?;
    let own = rustix::process::geteuid();
    match socket_peercred(&socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == own) {
        true => Ok(socket),
        false => {
            let why = "the service is another user's";
            Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
        }
    }
}

/// The socket at which a service waits for programs.
#[derive(Debug)]
pub struct ServiceSocket(OwnedFd);

/// A program's connection, as the service has it.
#[derive(Debug)]
pub struct ServiceConnection {
    socket: OwnedFd,
    /// Its process.
    pub process: u32,
    /// Whose it is.
    pub user: u32,
}

impl ServiceSocket {
    /// Takes the name of a service.
    ///
    /// # Errors
    /// There is one already ([`io::ErrorKind::AddrInUse`]).
    pub fn open(name: &str) -> io::Result<Self> {
        let socket = packets(SocketFlags::NONBLOCK)?;
        rustix::net::bind(&socket, &address(name)?)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(Self(socket))
    }

    /// The same with a socket that another process has opened, listening.
    pub fn inherited(socket: OwnedFd) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&socket, rustix::fs::OFlags::NONBLOCK)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        Ok(Self(socket))
    }

    /// Takes a program that waits.
    ///
    /// # Errors
    /// Those of accept(2), but for that there is none.
    pub fn take(&self) -> io::Result<Option<ServiceConnection>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match rustix::net::accept_with(&self.0, flags) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let peer = socket_peercred(&socket)?;
        let process = peer.pid.as_raw_nonzero().get().unsigned_abs();
        Ok(Some(ServiceConnection { socket, process, user: peer.uid.as_raw() }))
    }
}

impl AsFd for ServiceSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl ServiceConnection {
    /// Takes a message, into `octets`, which is at least one longer than the longest.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: there is none.
    pub fn receive(&self, octets: &mut [u8]) -> io::Result<Option<usize>> {
        socket::try_receive(&self.socket, octets)
    }

    /// Sends a message; false when the program is gone, or does not read.
    pub fn send(&self, octets: &[u8]) -> bool {
        socket::try_send(&self.socket, &[IoSlice::new(octets)]).unwrap_or(false)
    }
}

impl AsFd for ServiceConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
