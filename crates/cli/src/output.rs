//! Writing what a run leaves, all or nothing.

use anyhow::{Context, bail};
use onbeat_host::process::{Keeper, Kept};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::path::{Path, PathBuf};

/// The results of all runs of an output, as JSON.
pub(crate) const RESULTS: &str = "results.json";
/// The report of an output.
pub(crate) const REPORT: &str = "report.html";
/// The records of one run, in its own directory.
pub(crate) const RECORDS: &str = "records.onb";
/// The messages of one run, in its own directory.
pub(crate) const MESSAGES: &str = "messages.csv";

/// A directory that appears under its name only when it is complete. Until then, and if the process
/// is killed, it exists under another name that the keeper removes.
pub(crate) struct Output<'a> {
    target: PathBuf,
    partial: PathBuf,
    keeper: &'a mut Keeper,
    done: bool,
}

impl<'a> Output<'a> {
    /// Begins a directory that will be called `target`.
    pub(crate) fn begin(target: &Path, keeper: &'a mut Keeper) -> anyhow::Result<Self> {
        let target = &target.canonicalize().unwrap_or(target.to_owned());
        if target.exists() && !is_output(target)? {
            bail!(
                "{} holds something else than the output of a run: it is not replaced; choose \
                 another place with --out",
                target.display()
            );
        }
        let mut name = target.file_name().context("the output directory has no name")?.to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize();
        let parent = parent.with_context(|| target.display().to_string())?;
        let partial = parent.join(name);
        keeper.guard(Kept::Path(&partial))?;
        std::fs::create_dir(&partial).with_context(|| partial.display().to_string())?;
        Ok(Self { target: target.to_owned(), partial, keeper, done: false })
    }

    /// The keeper that watches over it, for what else there is to watch over.
    pub(crate) fn keeper(&mut self) -> &mut Keeper {
        self.keeper
    }

    /// Writes one file of it.
    pub(crate) fn write(&self, name: &str, octets: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let path = self.partial.join(name);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&path, octets).with_context(|| path.display().to_string())
    }

    /// Makes the directory appear under its name; one that was there before goes away.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let failed = || format!("{} cannot be replaced", self.target.display());
        let swap = |flags| renameat_with(CWD, &self.partial, CWD, &self.target, flags);
        if swap(RenameFlags::NOREPLACE).is_err() {
            swap(RenameFlags::EXCHANGE).with_context(failed)?;
            // What was there before now has the other name, and goes.
            std::fs::remove_dir_all(&self.partial).with_context(failed)?;
        }
        self.keeper.release(Kept::Path(&self.partial))?;
        self.done = true;
        Ok(())
    }
}

/// Whether a directory is empty or holds what a run writes, and nothing else.
fn is_output(directory: &Path) -> anyhow::Result<bool> {
    let entries = directory.read_dir().with_context(|| directory.display().to_string())?;
    let names = |directory: &Path| -> Vec<String> {
        let entries = directory.read_dir().into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    if entries.count() == 0 {
        return Ok(true);
    }
    let text = std::fs::read_to_string(directory.join(RESULTS)).unwrap_or_default();
    let ours = |name: &String| {
        let run = directory.join(name);
        let files = [RECORDS, MESSAGES];
        let is_run = run.is_dir() && names(&run).iter().all(|n| files.contains(&n.as_str()));
        [RESULTS, REPORT].contains(&name.as_str()) || is_run
    };
    let results = serde_json::from_str::<onbeat_measure::Results>(&text);
    Ok(results.is_ok() && names(directory).iter().all(ours))
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.done {
            // The keeper tries again if this fails.
            let _ = std::fs::remove_dir_all(&self.partial);
        }
    }
}
