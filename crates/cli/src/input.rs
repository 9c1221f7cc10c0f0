//! Reading what others may have written: regular files only, and never more than a limit.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most of a file of results, as JSON.
pub(crate) const RESULTS_OCTETS: u64 = 1 << 30;

/// The most of a file of records.
pub(crate) const RECORDS_OCTETS: u64 = 16 << 30;

/// Opens a regular file; a pipe, a socket or a device is none, and is not waited for.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.map_err(failed)?;
    match file.metadata().map_err(failed)? {
        found if found.is_file() => Ok(file),
        found if found.is_dir() => Err(format!("{}: Is a directory", path.display())),
        _ => Err(format!("{}: this is no regular file", path.display())),
    }
}

/// The octets of a regular file of at most so many.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    let read = open(path)?.take(most + 1).read_to_end(&mut octets);
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    if octets.len() as u64 > most {
        return Err(format!("{}: the file has more than {most} octets", path.display()));
    }
    Ok(octets)
}
