//! Reading what others may have written: regular files only, and never more than a limit.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file to be read.
///
/// # Errors
///
/// It cannot be opened, or is something else: a pipe, a socket or a device is not waited for.
pub fn open(path: &Path) -> Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    only(options.read(true).custom_flags(flags.bits().cast_signed()).open(path)?)
}

/// A file that somebody has opened, if it is a regular one.
///
/// # Errors
///
/// It is not.
pub fn only(file: File) -> Result<File> {
    match file.metadata()? {
        found if found.is_file() => Ok(file),
        found if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        _ => Err(Error::other("this is no regular file")),
    }
}

/// The octets of a regular file of at most so many.
///
/// # Errors
///
/// It cannot be opened or read, is something else, or has more octets.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    all(open(path)?, most)
}

/// The octets of an open file of at most so many.
///
/// # Errors
///
/// It cannot be read or has more octets.
pub fn all(file: File, most: u64) -> Result<Vec<u8>> {
    // What is too long by what the file system says of it is not read first: it may be a hole.
    let mut octets = Vec::new();
    let mut length = file.metadata()?.len();
    if length <= most {
        length = file.take(most.saturating_add(1)).read_to_end(&mut octets)? as u64;
    }
    match length <= most {
        true => Ok(octets),
        false => Err(Error::other(format!("the file has more than {most} octets"))),
    }
}

/// The same as text.
///
/// # Errors
///
/// As [`read`], or it is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String> {
    utf8(read(path, most)?)
}

/// Octets as text.
///
/// # Errors
///
/// They are not UTF-8.
pub fn utf8(octets: Vec<u8>) -> Result<String> {
    String::from_utf8(octets)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "the file is not UTF-8"))
}
