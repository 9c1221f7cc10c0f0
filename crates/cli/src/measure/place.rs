//! A directory for what is needed only while something is measured.

use anyhow::Context;
use onbeat_run::process::{Kept, Reaper};
use std::path::PathBuf;

/// A directory that is gone at the end, however that comes.
pub(super) struct Directory {
    pub(super) path: PathBuf,
}

impl Directory {
    /// Makes it, for this user only, under a name that cannot have been taken before.
    pub(super) fn make(reaper: &mut Reaper) -> anyhow::Result<Self> {
        let made = tempfile::Builder::new().prefix("onbeat-measure-").tempdir();
        let path = made.context("a directory for what is measured")?.keep();
        reaper.guard(Kept::Path(&path))?;
        Ok(Self { path })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The reaper tries again if this fails.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
