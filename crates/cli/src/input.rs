//! Reading what others may have written, as `onbeat::regular` does. Nothing else in this crate
//! opens or reads a file: `cargo run -p xtask -- tidy` looks.

use onbeat::regular;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// The most of a document of results, as JSON.
pub(crate) const RESULTS_OCTETS: u64 = 256 << 20;

/// The most of a plan, as JSON: that of 10,000 scheduled channels on 900 bridges has 261 MB.
pub(crate) const PLAN_OCTETS: u64 = 4 << 30;

/// The most of a file of records: 2^24 of them, and what stands around them.
pub(crate) const RECORDS_OCTETS: u64 = (1 << 30) + (64 << 20);

/// The most of a table of values, as CSV.
pub(crate) const VALUES_OCTETS: u64 = 1 << 30;

/// The most of a program or a library.
pub(crate) const PROGRAM_OCTETS: u64 = 1 << 30;

/// The most of a list that is installed with the command, and of what the kernel says of a process.
pub(crate) const LIST_OCTETS: u64 = 1 << 20;

/// Opens a regular file; a pipe, a socket or a device is none, and is not waited for.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    regular::open(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The octets of a regular file of at most so many.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    regular::read(path, most).map_err(|error| format!("{}: {error}", path.display()))
}

/// The text of a regular file of at most so many octets.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, String> {
    regular::text(path, most).map_err(|error| format!("{}: {error}", path.display()))
}

/// The same, or nothing where there is no such file.
pub(crate) fn text_if_there(path: &Path, most: u64) -> Result<Option<String>, String> {
    match regular::text(path, most) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
        Ok(text) => Ok(Some(text)),
    }
}
