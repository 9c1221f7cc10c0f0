//! Writing what a run or a simulation leaves, all or nothing.

use crate::chosen::WrongArgument;
use crate::deploy::{CLOCKS, CONFIGURATION};
use crate::input;
use anyhow::{Context, bail};
use onbeat::clock::{MonoTime, pause};
use onbeat::interface::{ChannelTable, TABLE_EXTENSION, TABLE_OCTETS};
use onbeat_measure::ReservationsResult;
use onbeat_model::time::Span;
use onbeat_network_code::assembly::TEXT_OCTETS;
use onbeat_network_code::planning::PLANNED;
use onbeat_run::process::{Kept, Reaper};
use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat, renameat_with,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// The results of all runs of an output, as JSON.
pub(crate) const RESULTS: &str = "results.json";
/// The report of an output.
pub(crate) const REPORT: &str = "report.html";
/// The records of one run, in its own directory.
pub(crate) const RECORDS: &str = "records.onb";
/// The messages of one run, in its own directory.
pub(crate) const MESSAGES: &str = "messages.csv";
/// The reservations by protocol of one run, in its own directory, or of a simulation.
pub(crate) const RESERVATIONS: &str = "reservations.csv";
/// What a simulation saw, as JSON.
pub(crate) const SIMULATION: &str = "simulation.json";
/// The report of a simulation.
pub(crate) const SIMULATION_REPORT: &str = "simulation.html";

/// What runs of a federation saw, as JSON.
pub(crate) const FEDERATION: &str = "federation.json";
/// The report of those.
pub(crate) const FEDERATION_REPORT: &str = "federation.html";
/// Their ranges, as CSV.
pub(crate) const FEDERATION_RANGES: &str = "federation.csv";

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

/// What a file is of; like a directory, it only ever replaces its like, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Frames for Wireshark.
    Capture,
    /// A run for Perfetto.
    Trace,
}

impl FileKind {
    /// The kind for a person.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Capture => "a capture",
            Self::Trace => "a trace of `--perfetto`",
        }
    }

    /// What it begins with: pcapng with the type of a block.
    const fn start(self) -> &'static [u8] {
        match self {
            Self::Capture => &[0x0a, 0x0d, 0x0d, 0x0a],
            Self::Trace => onbeat_report::TRACE_START.as_bytes(),
        }
    }

    /// Refuses a target that is there and of another kind.
    pub(crate) fn may_replace(self, target: &Path) -> anyhow::Result<()> {
        if target.exists() && !target.is_file() {
            bail!("{} is not a file: it is not replaced", target.display());
        }
        if target.exists() && !begins_with(target, self.start())? {
            let (target, kind) = (target.display(), self.as_str());
            bail!("{target} holds something else than {kind}: it is not replaced");
        }
        Ok(())
    }
}

/// What an output directory is of; it only ever replaces its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Simulation,
    /// Runs of a federation's skeleton.
    Federation,
    Measurement,
    Deployment,
    /// A system to begin with. A person edits it further: it never replaces anything.
    System,
}

impl Kind {
    /// The kind for a person.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Simulation => "a simulation",
            Self::Federation => "`onbeat lf simulate`",
            Self::Measurement => "a measurement",
            Self::System => "`onbeat new`",
            Self::Deployment => "a deployment",
        }
    }

    /// The flag that says where it goes.
    const fn flag(self) -> &'static str {
        match self {
            Self::Deployment => "--deploy",
            Self::Run | Self::Simulation | Self::Federation | Self::Measurement | Self::System => {
                "--out"
            }
        }
    }
}

/// Writes the reservations by protocol of a run or a simulation, if it made any, to a directory of
/// the output, whose name ends with a slash, or is empty.
pub(crate) fn write_reservations(
    output: &Output<'_>,
    directory: &str,
    reservations: Option<&ReservationsResult>,
) -> anyhow::Result<()> {
    let Some(reservations) = reservations else { return Ok(()) };
    let mut table = Vec::new();
    onbeat_report::reservations_csv(reservations, &mut table)?;
    output.write(&format!("{directory}{RESERVATIONS}"), table)
}

/// Where an output goes: where the user says, else to a name beside the description. There a link
/// is not followed: it may be the description's author who has put it there.
pub(crate) fn place(beside: &Path, name: &str, asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    let place = beside.join(name);
    match asked {
        Some(asked) => Ok(asked.to_owned()),
        None if place.is_symlink() => {
            bail!("{} is a link: say with --out where to write", place.display())
        }
        None => Ok(place),
    }
}

/// A directory that appears under its name only when it is complete. Until then, and if the process
/// is killed, it exists under another name that the reaper removes.
pub(crate) struct Output<'a> {
    target: PathBuf,
    kind: Kind,
    partial: PathBuf,
    reaper: &'a mut Reaper,
    /// The partial directory, locked: whoever else would write the same target sees that.
    directory: File,
    /// Whether all of it is on the disk before it has its name, and the name before it is done.
    durable: bool,
    done: bool,
}

impl<'a> Output<'a> {
    /// Begins a directory that will be called `target`.
    pub(crate) fn begin(target: &Path, kind: Kind, reaper: &'a mut Reaper) -> anyhow::Result<Self> {
        // A link that leads nowhere is there, too.
        if kind == Kind::System && target.symlink_metadata().is_ok() {
            bail!("{} exists: choose another name", target.display());
        }
        let target = &target.canonicalize().unwrap_or(target.to_owned());
        if target.exists() && !is_output(target, kind)? {
            bail!(
                "{} holds something else than the output of {}: it is not replaced; choose \
                 another place with {}",
                target.display(),
                kind.as_str(),
                kind.flag(),
            );
        }
        let (partial, directory) = lock(target, kind, reaper)?;
        // Nobody waits for a measurement to continue.
        let durable = kind == Kind::Measurement;
        let target = target.to_owned();
        Ok(Self { target, kind, partial, reaper, directory, durable, done: false })
    }

    /// The same, on the disk when it is finished: what fails then, as a loss of power, leaves it or
    /// what was there before.
    pub(crate) fn durable(mut self, durable: bool) -> Self {
        self.durable |= durable;
        self
    }

    /// The reaper that watches over it, for what else there is to watch over.
    pub(crate) fn reaper(&mut self) -> &mut Reaper {
        self.reaper
    }

    /// Writes one file of it, which is new, below it, and not by way of a link.
    pub(crate) fn write(&self, name: &str, octets: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let shown = || self.partial.join(name).display().to_string();
        let mut file = below(&self.directory, Path::new(name)).with_context(shown)?;
        file.write_all(octets.as_ref()).with_context(shown)?;
        if self.durable {
            file.sync_all().with_context(shown)?;
        }
        Ok(())
    }

    /// Makes the directory appear under its name; one that was there before goes away.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let failed = || format!("{} cannot be replaced", self.target.display());
        if self.durable {
            sync_directories(&self.partial).with_context(failed)?;
        }
        let swap = |flags| renameat_with(CWD, &self.partial, CWD, &self.target, flags);
        let renamed = swap(RenameFlags::NOREPLACE);
        if self.kind == Kind::System {
            renamed.with_context(|| self.target.display().to_string())?;
        } else if renamed.is_err() {
            swap(RenameFlags::EXCHANGE).with_context(failed)?;
            // What was there before now has the other name, and goes: unless it is no longer what
            // it was when this began.
            if !is_output(&self.partial, self.kind).unwrap_or(false) {
                swap(RenameFlags::EXCHANGE).with_context(failed)?;
                bail!("{} has changed meanwhile: it is not replaced", self.target.display());
            }
            if self.durable {
                sync_parent(&self.target)?;
            }
            std::fs::remove_dir_all(&self.partial).with_context(failed)?;
        }
        if self.durable {
            sync_parent(&self.target)?;
        }
        self.reaper.release(Kept::Path(&self.partial))?;
        self.done = true;
        Ok(())
    }
}

/// Makes the partial directory of a target and locks it, unless another process has one: two
/// outputs of one name at once would end as the one of whoever is later. A lock goes with its
/// process, however that ends. A file system without locks refuses no user.
fn lock(target: &Path, kind: Kind, reaper: &mut Reaper) -> anyhow::Result<(PathBuf, File)> {
    let shown = || target.display().to_string();
    let parent = parent(target)?;
    // Looking and making is one step: who comes meanwhile waits. Anybody who may read the directory
    // may have its lock, and is not waited for for ever.
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let one_at_a_time = openat(CWD, &parent, flags, Mode::empty()).with_context(shown)?;
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
        let process = process.split('-').next().unwrap_or(process);
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
                 another place with {}",
                target.display(),
                kind.flag(),
            );
        }
    }
    // As open to others as what the user makes otherwise.
    let ((), partial) = make(target, reaper, |path| std::fs::create_dir(path))?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(openat(CWD, &partial, flags, Mode::empty()).with_context(shown)?);
    let _ = flock(&directory, FlockOperation::NonBlockingLockExclusive);
    Ok((partial, directory))
}

/// Makes what will be called `target`, under the name that it has until it is complete. The reaper
/// knows of it before it is there: there is no instant at which a kill would leave it behind. Its
/// name is one that no other process chooses.
fn make<T>(
    target: &Path,
    reaper: &mut Reaper,
    mut make: impl FnMut(&Path) -> std::io::Result<T>,
) -> anyhow::Result<(T, PathBuf)> {
    let mut name = target.file_name().context("the output has no name")?.to_owned();
    name.push(format!("{PARTIAL}{}-", std::process::id()));
    let parent = parent(target)?;
    let made = tempfile::Builder::new().prefix(&name).rand_bytes(16).make_in(parent, |path| {
        reaper.guard(Kept::Path(path))?;
        make(path).inspect_err(|_| drop(reaper.release(Kept::Path(path))))
    });
    let shown = || target.display().to_string();
    made.with_context(shown)?.keep().map_err(|failed| failed.error).with_context(shown)
}

/// The directory that a target is in, without links.
pub(crate) fn parent(target: &Path) -> anyhow::Result<PathBuf> {
    let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    parent.with_context(|| target.display().to_string())
}

/// Puts on the disk which names a directory that this process has made has, and those below it.
fn sync_directories(directory: &Path) -> std::io::Result<()> {
    for entry in directory.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_directories(&entry.path())?;
        }
    }
    sync(directory)
}

/// Puts on the disk which names the directory of a target has.
fn sync_parent(target: &Path) -> anyhow::Result<()> {
    sync(&parent(target)?).with_context(|| target.display().to_string())
}

fn sync(directory: &Path) -> std::io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    File::from(openat(CWD, directory, flags, Mode::empty())?).sync_all()
}

/// Makes a file below a directory, and the directories on its way: no step is a link, or leads up.
fn below(directory: &File, name: &Path) -> anyhow::Result<File> {
    let mut at = directory.try_clone()?;
    let mut steps = name.components().peekable();
    while let Some(step) = steps.next() {
        let Component::Normal(step) = step else { bail!("this leads out of the directory") };
        if steps.peek().is_none() {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            return Ok(openat(&at, step, flags, Mode::from_raw_mode(0o666))?.into());
        }
        match mkdirat(&at, step, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = openat(&at, step, flags, Mode::empty())?.into();
    }
    bail!("a file needs a name")
}

/// A file that appears under its name only when it is complete, as an [`Output`] does.
pub(crate) struct OutputFile {
    target: PathBuf,
    partial: PathBuf,
    /// Where it is to be on the disk before it has its name: the file.
    durable: Option<File>,
    done: bool,
}

impl OutputFile {
    /// Begins a file that will be called `target`, and opens it.
    pub(crate) fn begin(
        target: &Path,
        kind: FileKind,
        durable: bool,
        reaper: &mut Reaper,
    ) -> anyhow::Result<(Self, File)> {
        let target = behind_links(target)?;
        kind.may_replace(&target)?;
        let (file, partial) = make(&target, reaper, |path| File::create_new(path))?;
        let durable = if durable { Some(file.try_clone()?) } else { None };
        Ok((Self { target, partial, durable, done: false }, file))
    }

    /// Gives it its name; a file that was there before goes away.
    pub(crate) fn finish(mut self, reaper: &mut Reaper) -> anyhow::Result<()> {
        let failed = || format!("{} cannot be replaced", self.target.display());
        if let Some(file) = &self.durable {
            file.sync_all().with_context(failed)?;
        }
        std::fs::rename(&self.partial, &self.target).with_context(failed)?;
        if self.durable.is_some() {
            sync_parent(&self.target)?;
        }
        reaper.release(Kept::Path(&self.partial))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.done {
            // The reaper tries again if this fails.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

/// The file that a target is, be it named by a link: links stay what they are. A link that the
/// kernel does not let this user follow is not followed either.
fn behind_links(target: &Path) -> anyhow::Result<PathBuf> {
    if !target.is_symlink() {
        return Ok(target.to_owned());
    }
    let shown = target.display();
    if std::fs::read_link(target).is_ok_and(|to| to.starts_with("/proc/")) {
        bail!("{shown} is an open file without a name: it is not replaced");
    }
    target.metadata().with_context(|| format!("{shown} is a link that leads nowhere"))?;
    target.canonicalize().with_context(|| shown.to_string())
}

/// Writes files, all or none: each is complete before the first gets its name. One that is there is
/// only replaced if it begins as its like does: what a user has written is not lost.
pub(crate) fn write_files<T: AsRef<[u8]>>(files: &[(&Path, T)]) -> anyhow::Result<()> {
    for (target, content) in files {
        let wanted = beginning(content.as_ref());
        if target.is_file() && !begins_with(target, wanted)? {
            let target = target.display();
            bail!(
                "{target} holds something else: it is not replaced; give the output another name"
            );
        }
    }
    rewrite_files(files)
}

/// An output must not be the file that is read.
pub(crate) fn spare(input: &Path, out: &Path) -> Result<(), WrongArgument> {
    let [input_real, out_real] = [input, out].map(|path| path.canonicalize().ok());
    if input_real.is_some() && input_real == out_real {
        let why = format!("{} is read: give the output another name", out.display());
        return Err(WrongArgument(why));
    }
    Ok(())
}

/// What all files of a kind begin with: JSON with its format, the others with a word.
fn beginning(content: &[u8]) -> &[u8] {
    let is_break = |(at, octet): (usize, &u8)| (*octet == b'\n').then_some(at);
    let end = match content.first() {
        Some(b'{') => content.iter().enumerate().filter_map(is_break).nth(1),
        _ => None,
    };
    &content[..end.unwrap_or(4).min(content.len())]
}

/// Whether a file is empty or begins so.
fn begins_with(file: &Path, wanted: &[u8]) -> anyhow::Result<bool> {
    let mut start = Vec::new();
    let opened = input::open(file).map_err(anyhow::Error::msg)?;
    opened.take(wanted.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == wanted)
}

/// The same of files that were read, whatever is in them.
pub(crate) fn rewrite_files<T: AsRef<[u8]>>(files: &[(&Path, T)]) -> anyhow::Result<()> {
    let mut written = Vec::new();
    for (target, content) in files {
        let shown = || target.display().to_string();
        let target = behind_links(target)?;
        if target.exists() && !target.is_file() {
            bail!("{} is not a file: it is not replaced", shown());
        }
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
        // What is written is as open to others as the user's other files.
        let mut file = tempfile::Builder::new()
            .prefix(".onbeat-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(parent.unwrap_or(Path::new(".")))
            .with_context(shown)?;
        file.write_all(content.as_ref()).with_context(shown)?;
        written.push((file, target));
    }
    for (file, target) in written {
        file.persist(&target).with_context(|| target.display().to_string())?;
    }
    Ok(())
}

/// What is in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

/// Whether a directory is empty or holds what its kind of output does, and nothing else.
fn is_output(directory: &Path, kind: Kind) -> anyhow::Result<bool> {
    let entries = directory.read_dir().with_context(|| directory.display().to_string())?;
    if entries.count() == 0 {
        return Ok(true);
    }
    let text = |name| {
        let octets = input::read(&directory.join(name), input::RESULTS_OCTETS).unwrap_or_default();
        String::from_utf8(octets).unwrap_or_default()
    };
    let of_run = |name: &String| {
        let run = directory.join(name);
        let files = [RECORDS, MESSAGES, RESERVATIONS];
        let is_run = run.is_dir() && names(&run).iter().all(|n| files.contains(&n.as_str()));
        [RESULTS, REPORT].contains(&name.as_str()) || is_run
    };
    let files = [SIMULATION, SIMULATION_REPORT, REPETITIONS, RESERVATIONS];
    let of_simulation = |name: &String| files.contains(&name.as_str());
    let of_federation =
        |name: &String| [FEDERATION, FEDERATION_REPORT, FEDERATION_RANGES].contains(&name.as_str());
    let of_measurement = |name: &String| {
        let samples = directory.join(SAMPLES);
        let is_csv = |name: &String| name.ends_with(".csv");
        [MEASUREMENT, MEASUREMENT_REPORT].contains(&name.as_str())
            || (name == SAMPLES && samples.is_dir() && names(&samples).iter().all(is_csv))
    };
    Ok(match kind {
        Kind::Deployment => names(directory).iter().all(|name| is_deployed(directory, name)),
        Kind::System => false,
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
        Kind::Federation => {
            let results = serde_json::from_str::<onbeat_measure::federation::FederationResults>(
                &text(FEDERATION),
            );
            results.is_ok() && names(directory).iter().all(of_federation)
        }
    })
}

/// Whether a file of a directory is one of a deployment: a host's table, or what a node is told.
fn is_deployed(directory: &Path, name: &str) -> bool {
    let text = |most| {
        let octets = input::read(&directory.join(name), most).unwrap_or_default();
        String::from_utf8(octets).unwrap_or_default()
    };
    let content = |extensions: &[&str]| {
        let known = extensions.iter().any(|extension| name.ends_with(extension));
        if known { text(input::RESULTS_OCTETS) } else { String::new() }
    };
    let is_table = || {
        let table = text(TABLE_OCTETS).parse::<ChannelTable>();
        table.is_ok_and(|table| *name == format!("{}.{TABLE_EXTENSION}", table.host))
    };
    let is_configuration = || {
        let text = content(&CONFIGURATION);
        let modules = ["ietf-interfaces", "ieee802-dot1q-bridge", "ieee802-dot1cb-frer"];
        modules.iter().any(|name| text.contains(name))
    };
    let is_told = || {
        let [ptp4l, phc2sys] = CLOCKS.map(|extension| content(&[extension]));
        onbeat_configuration::is_linux(&content(&onbeat_configuration::LINUX))
            || ptp4l.starts_with("# ptp4l of ")
            || phc2sys.starts_with("-a -r ")
    };
    let is_networkd = || {
        let path = directory.join(name);
        let is_told = |name: &str| {
            let octets = input::read(&path.join(name), input::RESULTS_OCTETS).unwrap_or_default();
            onbeat_configuration::is_linux(&String::from_utf8(octets).unwrap_or_default())
        };
        name.ends_with(onbeat_configuration::NETWORKD)
            && !path.is_symlink()
            && path.is_dir()
            && names(&path).iter().all(|name| is_told(name))
    };
    let is_program = || {
        let is_planned = |name: &str| {
            let octets = input::read(&directory.join(name), TEXT_OCTETS as u64);
            octets.is_ok_and(|octets| octets.starts_with(PLANNED.as_bytes()))
        };
        // An image beside its text.
        match name.strip_suffix(".ncb") {
            Some(station) => is_planned(&format!("{station}.nc")),
            None => name.ends_with(".nc") && is_planned(name),
        }
    };
    is_table() || is_configuration() || is_told() || is_networkd() || is_program()
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.done {
            // The reaper tries again if this fails.
            let _ = std::fs::remove_dir_all(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_reaper_is_told_before_there_is_anything_to_remove() {
        let home = tempfile::tempdir().expect("a directory");
        let told = home.path().join("told");
        let mut reaper = Reaper::start(Command::new("tee").arg(&told)).expect("tee");
        let knows = |path: &Path| {
            let text = std::fs::read(&told).unwrap_or_default();
            let mut messages = text.split(|octet| *octet == 0);
            messages.any(|m| m == [b"+f", path.as_os_str().as_encoded_bytes()].concat())
        };
        let ((), path) = make(&home.path().join("out"), &mut reaper, |path| {
            while !knows(path) {
                pause(LOOK_AGAIN); // for ever, if it is told later
            }
            std::fs::create_dir(path)
        })
        .expect("made");
        assert!(path.is_dir());
    }
}
