//! Socket options that have no typed call elsewhere.

use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Sets a socket option whose value the kernel reads as a plain `T`.
///
/// # Errors
/// The kernel's.
pub fn set<T>(socket: impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for reading its own size; the kernel only reads it.
    let got = unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(value).cast(), size) };
    if got == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
