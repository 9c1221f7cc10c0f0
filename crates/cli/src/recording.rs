//! What a run records, on disk during the run: what is there when the machine, the disk or this
//! process fails can still be made a report of.

use crate::{input, terminal};
use anyhow::Context;
use onbeat_model::record::{Record, RunLog};
use onbeat_model::system::{Channel, System};
use onbeat_run::coordinator::records_per_endpoint;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What the name of a recording has behind that of its output.
const SUFFIX: &str = ".recording";
/// Octets of a line of `messages.csv`, about.
const LINE: u64 = 110;
/// Records of fewer octets are not worth a word.
const WORTH_A_WORD: u64 = 64 << 20;

/// A recording in progress. It goes away with the run's output complete.
pub(crate) struct Recording {
    path: PathBuf,
    file: Option<File>,
    parts: u64,
    /// What makes a report of it.
    verb: &'static str,
    done: bool,
}

impl Recording {
    /// Begins one beside an output; an earlier one goes away.
    pub(crate) fn begin(output: &Path) -> anyhow::Result<Self> {
        let path = place(output);
        let shown = || path.display().to_string();
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        // What has the name goes; if it is a link, what it leads to stays.
        let file = tempfile::Builder::new()
            .prefix(".onbeat-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(parent.unwrap_or(Path::new(".")))
            .with_context(shown)?;
        let file = file.persist(&path).with_context(shown)?;
        Ok(Self { path, file: Some(file), parts: 0, verb: "report", done: false })
    }

    /// Begins one of a host's part beside the output of the whole run.
    pub(crate) fn of_part(output: &Path, host: &str) -> anyhow::Result<Self> {
        let mut name = output.components().as_path().as_os_str().to_owned();
        name.push("-");
        name.push(host);
        let mut recording = Self::begin(Path::new(&name))?;
        recording.verb = "join";
        Ok(recording)
    }

    /// Adds what has been recorded since. Where the disk takes no more, what is there stays.
    pub(crate) fn add(&mut self, log: &RunLog) {
        self.extend(&onbeat_measure::records::recording_part(log));
    }

    /// The same of a part that is octets already.
    pub(crate) fn extend(&mut self, part: &[u8]) {
        let Some(file) = &mut self.file else { return };
        match file.write_all(part) {
            Ok(()) => self.parts += 1,
            Err(error) => {
                self.file = None;
                terminal::say(format_args!(
                    "onbeat: {}: {error}: what comes now is not on disk before the end",
                    self.path.display()
                ));
            }
        }
    }

    /// The output is complete: it has all of this.
    pub(crate) fn done(mut self) {
        self.done = true;
        // What cannot be removed is begun again by the next run.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if self.parts == 0 {
            let _ = std::fs::remove_file(&self.path);
            return;
        }
        terminal::say(format_args!(
            "onbeat: what was recorded is in {}: `onbeat {} --recovered` makes a report of it",
            self.path.display(),
            self.verb
        ));
    }
}

/// Where the recording of an output is.
pub(crate) fn place(output: &Path) -> PathBuf {
    // Without a slash at its end.
    let mut name = output.components().as_path().as_os_str().to_owned();
    name.push(SUFFIX);
    PathBuf::from(name)
}

/// The runs of an output's recording.
pub(crate) fn recovered(output: &Path) -> anyhow::Result<Vec<RunLog>> {
    let path = place(output);
    let octets = input::read(&path, input::RECORDS_OCTETS).map_err(anyhow::Error::msg)?;
    onbeat_measure::records::recover(&octets).with_context(|| path.display().to_string())
}

/// Says how much these runs will record, where that is much, or more than there is room for.
pub(crate) fn announce<'a>(systems: impl Iterator<Item = &'a System>, output: &Path) {
    let mut octets: u64 = 0;
    for system in systems {
        octets = octets.saturating_add(self::octets(system));
        let room = records(system);
        if let Some(channel) = system.channels.iter().find(|c| messages(system, c) > room) {
            terminal::say(format_args!(
                "onbeat: a run of these channels records {room} messages at each end, and channel \
                 `{}` sends about {} in {}: what comes behind them is counted only, and then its \
                 promise is not judged; --duration makes them fewer",
                channel.name,
                messages(system, channel),
                system.run.duration
            ));
        }
    }
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Where the room is not known, nothing is said of it.
    let room = rustix::fs::statvfs(parent).ok();
    let room = room.map(|of| of.f_bavail.saturating_mul(of.f_frsize));
    let short = room.filter(|room| *room < octets);
    if octets >= WORTH_A_WORD || short.is_some() {
        let room = short.map(|room| format!(", and only {} are free there", shown(room)));
        terminal::say(format_args!(
            "onbeat: this will record about {} in {}{}; --duration makes it less",
            shown(octets),
            output.display(),
            room.unwrap_or_default()
        ));
    }
}

/// What a run of a system records: each message at each end, in the recording, in the records, and
/// as a line for each listener.
fn octets(system: &System) -> u64 {
    let of_channel = |channel: &Channel| {
        let messages = messages(system, channel).min(records(system));
        let listeners = channel.listeners.len() as u64;
        let records = 2 * Record::SIZE as u64 * (listeners + 1);
        messages.saturating_mul(records + LINE * listeners)
    };
    system.channels.iter().map(of_channel).fold(0, u64::saturating_add)
}

/// The messages of a channel in a run.
fn messages(system: &System, channel: &Channel) -> u64 {
    let messages = system.run.duration.as_ns() / channel.interval.as_ns().max(1);
    u64::try_from(messages).unwrap_or(0)
}

/// How many of them an end records.
fn records(system: &System) -> u64 {
    records_per_endpoint(system.channels.iter().map(|c| 1 + c.listeners.len()).sum()).into()
}

fn shown(octets: u64) -> String {
    match octets {
        0..1_000_000 => format!("{} kB", octets / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", octets / 1_000_000),
        _ => format!("{}.{} GB", octets / 1_000_000_000, octets / 100_000_000 % 10),
    }
}
