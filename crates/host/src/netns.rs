//! Network namespaces.

use rustix::fd::BorrowedFd;
use std::io;

/// Makes the calling thread's sockets belong to `namespace`.
pub fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let network = Some(rustix::thread::LinkNameSpaceType::Network);
    Ok(rustix::thread::move_into_link_name_space(namespace, network)?)
}
