//! A directory for what is needed only while something is measured.

use anyhow::Context;
use onbeat_host::process::{Keeper, Kept};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// A directory that is gone at the end, however that comes.
pub(super) struct Directory {
    pub(super) path: PathBuf,
}

impl Directory {
    /// Makes it, for this user only.
    pub(super) fn make(keeper: &mut Keeper) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("onbeat-measure-{}", std::process::id()));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| path.display().to_string())?;
        keeper.guard(Kept::Path(&path))?;
        Ok(Self { path })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The keeper tries again if this fails.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
