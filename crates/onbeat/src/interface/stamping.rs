//! Whether the kernel notes when frames come. It begins with the machine's first socket that asks
//! for it, from a work queue, so some time later, and ends with the last one
//! (`net_enable_timestamp` in `net/core/dev.c` of Linux).

use crate::clock::{MonoTime, pause};
use crate::interface::{option, socket};
use onbeat_model::time::Span;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::OnceLock;

/// Has the kernel note it as long as this process lives: also of the first frame to an end that is
/// closed and opened again.
pub(super) fn keep() {
    static KEEPER: OnceLock<Option<OwnedFd>> = OnceLock::new();
    KEEPER.get_or_init(|| asking().ok());
}

/// The same, and waits until the kernel does, for `limit` at most: whether it is known to. A
/// machine whose loopback interface is down does not tell.
pub fn begin_stamping(limit: Span) -> bool {
    keep();
    let end = MonoTime::now() + limit;
    let Ok(own) = asking().and_then(to_itself) else { return false };
    while MonoTime::now() < end && rustix::net::send(&own, &[0], SendFlags::DONTWAIT).is_ok() {
        let mut octet = [0];
        let mut parts = [IoSliceMut::new(&mut octet)];
        let (_, stamp) = socket::receive(&own, &mut parts, libc::MSG_DONTWAIT, None);
        if stamp.is_some_and(|stamp| stamp.software.is_some()) {
            return true;
        }
        pause(Span::from_ms(1));
    }
    false
}

/// A socket that asks for it and receives nothing.
fn asking() -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    let wanted = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    option::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &wanted)?;
    Ok(socket)
}

/// Connects a socket with itself.
fn to_itself(socket: OwnedFd) -> io::Result<OwnedFd> {
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::connect(&socket, &rustix::net::getsockname(&socket)?)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_begins_when_it_is_asked_to_and_who_does_not_wait_is_told_nothing() {
        assert!(begin_stamping(Span::from_s(10)), "the loopback interface is up");
        assert!(!begin_stamping(Span::ZERO));
    }
}
