//! A file that has no name until it is complete: however its writer ends, nothing else stays.

use crate::output::{FileKind, parent};
use anyhow::Context;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Such a file.
pub(crate) struct UnnamedFile {
    target: PathBuf,
    kept: Kept,
}

enum Kept {
    Unnamed(File),
    /// Of a file system that has no other. It goes away, but not if its writer is killed.
    Named(NamedTempFile),
}

impl UnnamedFile {
    /// Begins a file that will be called `target`, and opens it to write.
    pub(crate) fn begin(target: &Path, kind: FileKind) -> anyhow::Result<(Self, File)> {
        kind.may_replace(target)?;
        let shown = || target.display().to_string();
        let directory = parent(target)?;
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let kept = match openat(CWD, &directory, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => Kept::Unnamed(File::from(file)),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Kept::Named(
                tempfile::Builder::new()
                    .prefix(".onbeat-")
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(&directory)
                    .with_context(shown)?,
            ),
            Err(error) => return Err(error).with_context(shown),
        };
        let file = match &kept {
            Kept::Unnamed(file) => file.try_clone()?,
            Kept::Named(file) => file.as_file().try_clone()?,
        };
        Ok((Self { target: target.to_owned(), kept }, file))
    }

    /// Gives it its name; a file that was there before goes away.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let failed = || format!("{} cannot be replaced", self.target.display());
        let file = match self.kept {
            Kept::Named(file) => return file.persist(&self.target).map(drop).with_context(failed),
            Kept::Unnamed(file) => file,
        };
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        // A name can be given once, and does not replace another: so first to one that is free.
        let made =
            tempfile::Builder::new().prefix(".onbeat-").make_in(parent(&self.target)?, |to| {
                linkat(CWD, &from, CWD, to, AtFlags::SYMLINK_FOLLOW).map_err(std::io::Error::from)
            });
        let persisted = made.with_context(failed)?.into_temp_path().persist(&self.target);
        persisted.with_context(failed)
    }
}
