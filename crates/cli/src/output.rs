//! Writing what a run or a simulation leaves, all or nothing.

use anyhow::{Context, bail};
use onbeat_host::clock::{MonoTime, pause};
use onbeat_host::process::{Keeper, Kept};
use onbeat_model::time::Span;
use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, openat, renameat_with,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The results of all runs of an output, as JSON.
pub(crate) const RESULTS: &str = "results.json";
/// The report of an output.
pub(crate) const REPORT: &str = "report.html";
/// The records of one run, in its own directory.
pub(crate) const RECORDS: &str = "records.onb";
/// The messages of one run, in its own directory.
pub(crate) const MESSAGES: &str = "messages.csv";
/// What a simulation saw, as JSON.
pub(crate) const SIMULATION: &str = "simulation.json";
/// The report of a simulation.
pub(crate) const SIMULATION_REPORT: &str = "simulation.html";

/// What the five tests measured, as JSON.
pub(crate) const MEASUREMENT: &str = "measurement.json";
/// The report of a measurement.
pub(crate) const MEASUREMENT_REPORT: &str = "report.html";
/// The values of each series of a measurement.
pub(crate) const SAMPLES: &str = "samples";
/// What each repetition of a simulation saw, as CSV.
pub(crate) const REPETITIONS: &str = "repetitions.csv";

/// What the name of something that is not complete has behind it, before the process' number.
const PARTIAL: &str = ".partial-";

/// How long another is waited for that begins an output in the same directory.
const ONE_AT_A_TIME: Span = Span::from_s(2);
const LOOK_AGAIN: Span = Span::from_ms(5);

/// The type of the block that a pcapng file begins with.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// What an output directory is of; it only ever replaces its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Simulation,
    Measurement,
}

impl Kind {
    /// The kind for a person.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Simulation => "a simulation",
            Self::Measurement => "a measurement",
        }
    }
}

/// A directory that appears under its name only when it is complete. Until then, and if the process
/// is killed, it exists under another name that the keeper removes.
pub(crate) struct Output<'a> {
    target: PathBuf,
    partial: PathBuf,
    keeper: &'a mut Keeper,
    /// The partial directory, locked: whoever else would write the same target sees that.
    _locked: File,
    done: bool,
}

impl<'a> Output<'a> {
    /// Begins a directory that will be called `target`.
    pub(crate) fn begin(target: &Path, kind: Kind, keeper: &'a mut Keeper) -> anyhow::Result<Self> {
        let target = &target.canonicalize().unwrap_or(target.to_owned());
        if target.exists() && !is_output(target, kind)? {
            bail!(
                "{} holds something else than the output of {}: it is not replaced; choose \
                 another place with --out",
                target.display(),
                kind.as_str(),
            );
        }
        let partial = partial(target)?;
        let locked = lock(target, &partial, keeper)?;
        Ok(Self { target: target.to_owned(), partial, keeper, _locked: locked, done: false })
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

/// Makes the partial directory of a target and locks it, unless another process has one: two
/// outputs of one name at once would end as the one of whoever is later. A lock goes with its
/// process, however that ends. Where a file system has no locks, nobody is refused.
fn lock(target: &Path, partial: &Path, keeper: &mut Keeper) -> anyhow::Result<File> {
    let shown = || partial.display().to_string();
    let parent = partial.parent().context("the output has no directory")?;
    // Looking and making is one step: who comes meanwhile waits. Anybody who may read the directory
    // may have its lock, and is not waited for for ever.
    let one_at_a_time = File::open(parent).with_context(shown)?;
    let until = MonoTime::now() + ONE_AT_A_TIME;
    let locked = || flock(&one_at_a_time, FlockOperation::NonBlockingLockExclusive);
    while locked() == Err(Errno::WOULDBLOCK) && MonoTime::now() < until {
        pause(LOOK_AGAIN);
    }
    let name = target.file_name().context("the output has no name")?.to_string_lossy();
    let prefix = format!("{name}{PARTIAL}");
    for entry in parent.read_dir().with_context(shown)?.flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = other.strip_prefix(&prefix) else { continue };
        // What is no directory of this user's is nothing that this command made.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(directory) = openat(CWD, entry.path(), flags, Mode::empty()) else { continue };
        let me = geteuid().as_raw();
        if !fstat(&directory).is_ok_and(|about| about.st_uid == me) {
            continue;
        }
        let locked = flock(&directory, FlockOperation::NonBlockingLockExclusive);
        if locked == Err(Errno::WOULDBLOCK) {
            bail!(
                "process {process} is writing {} at this moment: wait for its end, or choose \
                 another place with --out",
                target.display()
            );
        }
    }
    keeper.guard(Kept::Path(partial))?;
    std::fs::create_dir(partial).with_context(shown)?;
    let directory = File::open(partial).with_context(shown)?;
    let _ = flock(&directory, FlockOperation::NonBlockingLockExclusive);
    Ok(directory)
}

/// The name that something has until it is complete and gets the name `target`.
fn partial(target: &Path) -> anyhow::Result<PathBuf> {
    let mut name = target.file_name().context("the output has no name")?.to_owned();
    name.push(format!("{PARTIAL}{}", std::process::id()));
    let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    Ok(parent.with_context(|| target.display().to_string())?.join(name))
}

/// A file that appears under its name only when it is complete, as an [`Output`] does.
pub(crate) struct OutputFile {
    target: PathBuf,
    partial: PathBuf,
    done: bool,
}

impl OutputFile {
    /// Begins a file that will be called `target`, and opens it.
    pub(crate) fn begin(target: &Path, keeper: &mut Keeper) -> anyhow::Result<(Self, File)> {
        if target.exists() && !target.is_file() {
            bail!("{} is not a file: it is not replaced", target.display());
        }
        if target.exists() && !is_capture(target)? {
            bail!("{} holds something else than a capture: it is not replaced", target.display());
        }
        let partial = partial(target)?;
        keeper.guard(Kept::Path(&partial))?;
        let file = File::create(&partial).with_context(|| partial.display().to_string())?;
        Ok((Self { target: target.to_owned(), partial, done: false }, file))
    }

    /// Gives it its name; a file that was there before goes away.
    pub(crate) fn finish(mut self, keeper: &mut Keeper) -> anyhow::Result<()> {
        let failed = || format!("{} cannot be replaced", self.target.display());
        std::fs::rename(&self.partial, &self.target).with_context(failed)?;
        keeper.release(Kept::Path(&self.partial))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.done {
            // The keeper tries again if this fails.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

/// Writes files, all or none: each is complete before the first gets its name.
pub(crate) fn write_files(files: &[(&Path, String)]) -> anyhow::Result<()> {
    let mut written = Vec::new();
    for (target, text) in files {
        let shown = || target.display().to_string();
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
        // What is written is as open to others as the user's other files.
        let mut file = tempfile::Builder::new()
            .prefix(".onbeat-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(parent.unwrap_or(Path::new(".")))
            .with_context(shown)?;
        file.write_all(text.as_bytes()).with_context(shown)?;
        if target.is_dir() {
            bail!("{} is a directory", shown());
        }
        written.push((file, target));
    }
    for (file, target) in written {
        file.persist(target).with_context(|| target.display().to_string())?;
    }
    Ok(())
}

/// Whether a file is empty or begins as pcapng does.
fn is_capture(file: &Path) -> anyhow::Result<bool> {
    let mut start = Vec::new();
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    opened.take(PCAPNG.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == PCAPNG)
}

/// Whether a directory is empty or holds what its kind of output does, and nothing else.
fn is_output(directory: &Path, kind: Kind) -> anyhow::Result<bool> {
    let entries = directory.read_dir().with_context(|| directory.display().to_string())?;
    let names = |directory: &Path| -> Vec<String> {
        let entries = directory.read_dir().into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    if entries.count() == 0 {
        return Ok(true);
    }
    let text = |name| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    let of_run = |name: &String| {
        let run = directory.join(name);
        let files = [RECORDS, MESSAGES];
        let is_run = run.is_dir() && names(&run).iter().all(|n| files.contains(&n.as_str()));
        [RESULTS, REPORT].contains(&name.as_str()) || is_run
    };
    let files = [SIMULATION, SIMULATION_REPORT, REPETITIONS];
    let of_simulation = |name: &String| files.contains(&name.as_str());
    let of_measurement = |name: &String| {
        let samples = directory.join(SAMPLES);
        let is_csv = |name: &String| name.ends_with(".csv");
        [MEASUREMENT, MEASUREMENT_REPORT].contains(&name.as_str())
            || (name == SAMPLES && samples.is_dir() && names(&samples).iter().all(is_csv))
    };
    Ok(match kind {
        Kind::Measurement => {
            onbeat_measure::measurement::read(&text(MEASUREMENT)).is_ok()
                && names(directory).iter().all(of_measurement)
        }
        Kind::Run => {
            let results = serde_json::from_str::<onbeat_measure::Results>(&text(RESULTS));
            results.is_ok() && names(directory).iter().all(of_run)
        }
        Kind::Simulation => {
            let results =
                serde_json::from_str::<onbeat_measure::simulation::Results>(&text(SIMULATION));
            results.is_ok() && names(directory).iter().all(of_simulation)
        }
    })
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.done {
            // The keeper tries again if this fails.
            let _ = std::fs::remove_dir_all(&self.partial);
        }
    }
}
