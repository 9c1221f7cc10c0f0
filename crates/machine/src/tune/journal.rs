//! What was changed, written down before it is changed: one JSON value a line (docs/tune.md).
//!
//! A line counts when its newline is there: what follows the last newline was torn by a kill or a
//! power failure, and what it was to announce was not done.
//!
//! It says what was there before, never what to execute, and what it says is checked when it is
//! read ([`super::admit`]): the superuser acts on it.

use super::admit::is_plain;
use super::identity::Identity;
use super::run::{Interrupt, Interrupted};
use super::state::Directory;
use super::target::{Target, Value};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use rustix::fs::{FlockOperation, OFlags};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

/// The version of the format.
pub const VERSION: u32 = 2;
/// The journal, the last one that was undone, and the lock, in the state directory.
const JOURNAL: &str = "tune.journal";
const LAST: &str = "tune.last";
const LOCK: &str = "tune.lock";
/// Octets of who has the lock.
const OWNER_MAX: u64 = 1_024;
/// The longest name of a profile or a boot.
const NAME_MAX: usize = 64;
pub(super) const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Octets of the longest journal: a hundred thousand changes.
const OCTETS_MAX: u64 = 64 << 20;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// A tune begins; what follows, up to the next one, belongs to it.
    Tune {
        /// [`VERSION`].
        version: u32,
        /// The kernel's boot identifier.
        boot: String,
        /// The profile, for people.
        profile: String,
        /// When it began, on CLOCK_MONOTONIC: with `boot` it tells tunes apart.
        started_ns: i64,
        /// By when it must be confirmed, on the same clock.
        confirm_by_ns: Option<i64>,
    },
    /// A change is about to be made.
    Begin {
        /// Its number, from 0 on through the whole journal.
        change: u32,
        /// What it is, for people.
        what: String,
        /// What is changed.
        target: Target,
        /// Its value before.
        old: Value,
        /// The value that is wanted.
        new: Value,
    },
    /// It was made.
    Done {
        /// Its number.
        change: u32,
        /// What was read back.
        after: Value,
    },
    /// The kernel did not make it, and it is as before.
    Refused {
        /// Its number.
        change: u32,
        /// What the kernel said.
        why: String,
    },
    /// It was taken back, or need not be.
    Undone {
        /// Its number.
        change: u32,
        /// How.
        how: Ending,
    },
    /// The user confirmed the tune: the dead-man timer does nothing any more.
    Confirmed,
}

/// How the undoing of a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The old value was set.
    Restored,
    /// It was there already.
    Already,
    /// Somebody else has set another value since, which stays.
    Left,
    /// A reboot undid it, or what was set is not there any more.
    Gone,
}

/// Why a journal could not be read, opened or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A line that breaks the format.
    #[error(
        "/var/lib/onbeat/{JOURNAL}: line {line}: {why}; nothing was changed: put it right, or move \
         it away if what it says no longer matters"
    )]
    Line {
        /// From 1 on.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Another process holds the lock.
    #[error(
        "another `onbeat tune` is at work on this machine{}: try again when it is done",
        .0.as_ref().map(|owner| format!(" (process {})", owner.pid)).unwrap_or_default()
    )]
    Locked(Option<Identity>),
    /// Others may have written what the superuser would act on.
    #[error(
        "{path}: {why}; nothing of it was believed, and nothing was changed: look at it, then \
         remove it or give it back to the superuser alone (docs/tune.md, the state directory)"
    )]
    Untrusted {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be read or written.
    #[error(
        "{path}: {error}{}",
        match error.kind() {
            io::ErrorKind::PermissionDenied => "; it is the superuser's alone: try it with sudo",
            _ => "",
        }
    )]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A test interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl From<Interrupted> for JournalError {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// A change that is not undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// Its number.
    pub change: u32,
    /// What it is.
    pub what: String,
    /// What was changed.
    pub target: Target,
    /// The value before.
    pub old: Value,
    /// The value that was wanted.
    pub new: Value,
    /// What was read back, if it came to that.
    pub after: Option<Value>,
    /// The boot that it was made in.
    pub boot: String,
}

/// Reads a journal's octets.
///
/// # Errors
///
/// [`JournalError::Line`]: a whole line that does not keep to the format, or to the order of
/// records, or says what no tune does.
pub fn parse(octets: &[u8]) -> Result<Vec<Record>, JournalError> {
    let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |at| at + 1);
    let (mut records, mut targets) = (Vec::new(), Vec::new());
    let mut changes = 0;
    let lines = octets[..whole].split_inclusive(|octet| *octet == b'\n');
    for (at, line) in lines.enumerate() {
        let wrong = |why: String| JournalError::Line { line: at + 1, why };
        let record = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        let known = |change: u32| match change < changes {
            true => Ok(()),
            false => Err(wrong(format!("change {change} has not begun"))),
        };
        match &record {
            Record::Tune { version, .. } if *version != VERSION => {
                return Err(wrong(format!(
                    "version {version} is not known, only {VERSION}: what another version made, it \
                     undoes"
                )));
            }
            Record::Tune { .. } => {}
            _ if records.is_empty() => {
                return Err(wrong("the first line must begin a tune".to_owned()));
            }
            Record::Begin { change, .. } if *change != changes => {
                return Err(wrong(format!("change {change} comes where {changes} is due")));
            }
            Record::Begin { .. } => changes += 1,
            Record::Done { change, .. }
            | Record::Refused { change, .. }
            | Record::Undone { change, .. } => known(*change)?,
            Record::Confirmed => {}
        }
        admit(&record, &targets).map_err(wrong)?;
        if let Record::Begin { target, .. } = &record {
            targets.push(target.clone());
        }
        records.push(record);
    }
    Ok(records)
}

/// Whether a tune may have written it; `targets` are those of the changes before.
fn admit(record: &Record, targets: &[Target]) -> Result<(), String> {
    let of_one = |change: &u32| targets.get(*change as usize).ok_or("it has not begun".to_owned());
    let texts: Vec<&str> = match record {
        Record::Tune { boot, profile, .. } => vec![boot, profile],
        Record::Begin { what, .. } => vec![what],
        Record::Refused { why, .. } => vec![why],
        Record::Done { .. } | Record::Undone { .. } | Record::Confirmed => Vec::new(),
    };
    if texts.iter().any(|text| !is_plain(text)) {
        return Err("a text has characters that are none to be read".to_owned());
    }
    match record {
        Record::Tune { .. } if texts.iter().any(|text| text.len() > NAME_MAX) => {
            Err("a name is too long".to_owned())
        }
        Record::Begin { target, old, new, .. } => target.admit(old, new),
        Record::Done { change, after } => of_one(change)?.admit_after(after),
        _ => Ok(()),
    }
}

/// The changes that are not undone, in the order in which they were begun.
pub fn outstanding(records: &[Record]) -> Vec<Outstanding> {
    let mut boot = "";
    let mut changes: Vec<Option<Outstanding>> = Vec::new();
    for record in records {
        match record {
            Record::Tune { boot: this, .. } => boot = this,
            Record::Begin { change, what, target, old, new } => changes.push(Some(Outstanding {
                change: *change,
                what: what.clone(),
                target: target.clone(),
                old: old.clone(),
                new: new.clone(),
                after: None,
                boot: boot.to_owned(),
            })),
            Record::Done { change, after } => {
                if let Some(Some(made)) = changes.get_mut(*change as usize) {
                    made.after = Some(after.clone());
                }
            }
            Record::Refused { change, .. } | Record::Undone { change, .. } => {
                if let Some(over) = changes.get_mut(*change as usize) {
                    *over = None;
                }
            }
            Record::Confirmed => {}
        }
    }
    changes.into_iter().flatten().collect()
}

/// The records of the machine's journal, without its lock: to look at.
///
/// # Errors
///
/// The journal cannot be read or is no journal.
pub fn read(machine: &Machine) -> Result<Vec<Record>, JournalError> {
    parse(&octets(machine, JOURNAL)?)
}

/// The records of the last journal that was undone.
///
/// # Errors
///
/// As [`read`].
pub fn last(machine: &Machine) -> Result<Vec<Record>, JournalError> {
    parse(&octets(machine, LAST)?)
}

fn octets(machine: &Machine, name: &str) -> Result<Vec<u8>, JournalError> {
    let Some(directory) = Directory::existing(machine)? else { return Ok(Vec::new()) };
    Ok(directory.read(name, OCTETS_MAX)?.unwrap_or_default())
}

/// The machine's journal, open for writing: no other process has it meanwhile.
#[derive(Debug)]
pub struct Journal {
    machine: Machine,
    directory: Directory,
    records: Vec<Record>,
    file: Option<File>,
    _lock: Lock,
}

/// Released at its end even while a program that another thread just starts still has it.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock); // closing it does the rest
    }
}

/// Takes the lock, and writes into it whose it is.
fn lock(directory: &Directory) -> Result<Lock, JournalError> {
    let path = directory.path(LOCK);
    let failed = |error| JournalError::File { path: path.clone(), error };
    let Some(file) = directory.lock(LOCK)? else {
        let owner = directory.read(LOCK, OWNER_MAX)?.unwrap_or_default();
        return Err(JournalError::Locked(serde_json::from_slice(&owner).ok()));
    };
    let mut lock = Lock(file);
    let own = serde_json::to_vec(&Identity::own().map_err(failed)?).expect("numbers and text");
    lock.0.set_len(0).and_then(|()| lock.0.rewind()).map_err(failed)?;
    lock.0.write_all(&own).map_err(failed)?;
    Ok(lock)
}

/// How far the journal is, and who is at it: both stay as they are while whoever has the lock does
/// nothing.
pub(super) fn progress(machine: &Machine) -> Result<(usize, Option<Identity>), JournalError> {
    let length = octets(machine, JOURNAL)?.len();
    let Some(directory) = Directory::existing(machine)? else { return Ok((length, None)) };
    let owner = directory.read(LOCK, OWNER_MAX)?.unwrap_or_default();
    Ok((length, serde_json::from_slice(&owner).ok()))
}

/// Ends a process of ours that keeps the lock and does nothing. What it leaves is what a kill
/// leaves, which `undo` finishes.
pub(super) fn end_owner(owner: &Identity) -> io::Result<()> {
    match owner.living()? {
        Some(living) => living.signal(Signal::KILL),
        None => Ok(()),
    }
}

impl Journal {
    /// Takes the lock and reads what is there.
    ///
    /// # Errors
    ///
    /// Somebody else has it, or it cannot be read, or is not to be trusted.
    pub fn open(machine: &Machine) -> Result<Self, JournalError> {
        let directory = Directory::make(machine)?;
        let lock = lock(&directory)?;
        let records = read(machine)?;
        Ok(Self { machine: machine.clone(), directory, records, file: None, _lock: lock })
    }

    /// What it says.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The changes that are not undone.
    pub fn outstanding(&self) -> Vec<Outstanding> {
        outstanding(&self.records)
    }

    /// The number of the next change.
    pub(super) fn next(&self) -> u32 {
        let begun = self.records.iter().filter(|record| matches!(record, Record::Begin { .. }));
        begun.count() as u32
    }

    /// Begins a tune.
    pub(super) fn begin_tune(
        &mut self,
        profile: &str,
        started_ns: i64,
        confirm_within: Option<Span>,
        interrupt: &mut Interrupt,
    ) -> Result<(), JournalError> {
        let record = Record::Tune {
            version: VERSION,
            boot: boot(&self.machine)?,
            profile: profile.to_owned(),
            started_ns,
            confirm_by_ns: confirm_within.map(|span| started_ns.saturating_add(span.as_ns())),
        };
        self.append(record, interrupt)
    }

    /// Notes that the user keeps the tune.
    ///
    /// # Errors
    ///
    /// The journal cannot be written.
    pub fn confirm(&mut self) -> Result<(), JournalError> {
        self.append(Record::Confirmed, &mut Interrupt::never())
    }

    /// Writes a record, and returns when it is on disk.
    pub(super) fn append(
        &mut self,
        record: Record,
        interrupt: &mut Interrupt,
    ) -> Result<(), JournalError> {
        let path = self.directory.path(JOURNAL);
        let failed = |error| JournalError::File { path: path.clone(), error };
        let mut line = serde_json::to_vec(&record).expect("records have no other keys than text");
        line.push(b'\n');
        interrupt.step()?;
        if self.file.is_none() {
            self.file = Some(self.open_file()?);
        }
        let file = self.file.as_mut().expect("it was opened");
        if let Err(interrupted) = interrupt.step() {
            // As a kill in the middle of the write leaves it.
            file.write_all(&line[..line.len() / 2]).map_err(failed)?;
            return Err(interrupted.into());
        }
        if let Err(error) = file.write_all(&line).and_then(|()| file.sync_data()) {
            // Half a line may be there: who opens it again continues behind the last whole one.
            self.file = None;
            return Err(failed(error));
        }
        self.records.push(record);
        interrupt.step()?;
        Ok(())
    }

    /// Opens the file behind its last whole line.
    fn open_file(&self) -> Result<File, JournalError> {
        let path = self.directory.path(JOURNAL);
        let failed = |error| JournalError::File { path: path.clone(), error };
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let file = self.directory.open(JOURNAL, flags)?;
        let file = file.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let mut octets = Vec::new();
        (&file).take(OCTETS_MAX).read_to_end(&mut octets).map_err(failed)?;
        let whole = octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64).map_err(failed)?;
        self.directory.sync()?;
        Ok(file)
    }

    /// Puts the journal away: all is undone.
    pub(super) fn close(self) -> Result<(), JournalError> {
        self.directory.rename(JOURNAL, LAST)?;
        self.directory.sync()
    }
}

/// What tells this boot of the machine from others.
///
/// # Errors
///
/// The machine does not say.
pub fn boot(machine: &Machine) -> Result<String, JournalError> {
    let failed = |error| JournalError::File { path: machine.path(BOOT_ID), error };
    machine.read(BOOT_ID).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tune() -> Record {
        let boot = "b".to_owned();
        let profile = "cpuset".to_owned();
        Record::Tune { version: VERSION, boot, profile, started_ns: 1, confirm_by_ns: None }
    }

    fn begin(change: u32) -> Record {
        let target = Target::text("/proc/sys/vm/stat_interval");
        let (old, new) = (Some("1".to_owned()), Some("10".to_owned()));
        Record::Begin { change, what: "x\u{fffd}\"".to_owned(), target, old, new }
    }

    fn text(records: &[Record]) -> Vec<u8> {
        let lines = records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n");
        lines.collect::<String>().into_bytes()
    }

    #[test]
    fn the_format_is_as_documented() {
        let shown = String::from_utf8(text(&[tune(), begin(0), Record::Confirmed])).unwrap();
        let lines: Vec<_> = shown.lines().collect();
        let tune = r#"{"tune":{"version":2,"boot":"b","profile":"cpuset","started_ns":1,"#;
        assert!(lines[0].starts_with(tune), "{shown}");
        let begin = r#"{"begin":{"change":0,"what":"x"#;
        assert!(lines[1].starts_with(begin), "{shown}");
        let target =
            r#","target":{"kind":"file","path":"/proc/sys/vm/stat_interval","form":"text"},"#;
        assert!(lines[1].contains(target), "{shown}");
        assert_eq!(lines[2], r#""confirmed""#);
    }

    #[test]
    fn whole_lines_in_the_wrong_order_are_refused_with_their_number() {
        let undone = Record::Undone { change: 1, how: Ending::Restored };
        for (records, wrong) in [
            (vec![begin(0)], 1),
            (vec![tune(), begin(1)], 2),
            (vec![tune(), begin(0), begin(0)], 3),
            (vec![tune(), begin(0), undone], 3),
        ] {
            let Err(JournalError::Line { line, .. }) = parse(&text(&records)) else {
                panic!("{records:?} was taken");
            };
            assert_eq!(line, wrong);
        }
        let later = String::from_utf8(text(&[tune()])).unwrap().replace("n\":2", "n\":3");
        assert!(parse(later.as_bytes()).unwrap_err().to_string().contains("version 3"));
    }

    #[test]
    fn what_no_tune_writes_is_refused_with_its_line_and_nothing_is_done() {
        let text = String::from_utf8(text(&[tune(), begin(0)])).unwrap();
        assert!(parse(text.as_bytes()).is_ok());
        let vlan = r#""kind":"vlan","name":"x","setup":[["/bin/sh","-c","id"]]"#;
        for (from, to) in [
            ("/proc/sys/vm/stat_interval", "/etc/shadow"),
            ("/proc/sys/vm/stat_interval", "/proc/sys/kernel/core_pattern"),
            ("\"old\":\"1\"", "\"old\":\"|/bin/sh\""),
            ("\"what\":\"x", "\"what\":\"\\u001b[2J"),
            ("\"what\"", "\"setup\":[[\"id\"]],\"what\""),
            (r#""kind":"file","path":"/proc/sys/vm/stat_interval","form":"text""#, vlan),
        ] {
            let hostile = text.replace(from, to);
            assert_ne!(hostile, text);
            let Err(JournalError::Line { line: 2, why }) = parse(hostile.as_bytes()) else {
                panic!("{hostile} was taken");
            };
            assert!(!why.contains(char::is_control), "{why}");
        }
        let done = Record::Done { change: 0, after: Some("\u{1b}[2J".to_owned()) };
        let octets = self::text(&[tune(), begin(0), done]);
        assert!(matches!(parse(&octets), Err(JournalError::Line { line: 3, .. })));
    }

    #[test]
    fn what_is_outstanding_is_what_nobody_took_back() {
        let records = [
            tune(),
            begin(0),
            Record::Done { change: 0, after: None },
            begin(1),
            begin(2),
            Record::Refused { change: 1, why: String::new() },
            Record::Undone { change: 0, how: Ending::Left },
        ];
        let left: Vec<_> = outstanding(&records).into_iter().map(|o| o.change).collect();
        assert_eq!(left, [2]);
    }

    #[test]
    fn two_at_once_cannot_have_it() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::below(directory.path());
        let first = Journal::open(&machine).unwrap();
        let Err(JournalError::Locked(Some(owner))) = Journal::open(&machine) else {
            panic!("two have it, or nobody knows who");
        };
        assert_eq!(owner, Identity::own().unwrap());
        drop(first);
        assert!(Journal::open(&machine).is_ok());
    }

    proptest! {
        #[test]
        fn any_octets_are_a_journal_or_an_error(octets: Vec<u8>) {
            let _ = parse(&octets);
        }

        #[test]
        fn a_journal_cut_anywhere_is_one_of_fewer_records(
            changes in 1..5_u32,
            cut: prop::sample::Index,
        ) {
            let mut records = vec![tune()];
            records.extend((0..changes).map(begin));
            let octets = text(&records);
            let cut = cut.index(octets.len() + 1);
            let read = parse(&octets[..cut]).unwrap();
            prop_assert_eq!(&read[..], &records[..read.len()]);
            let whole = octets[..cut].iter().filter(|octet| **octet == b'\n').count();
            prop_assert_eq!(read.len(), whole);
        }

        #[test]
        fn a_journal_with_one_octet_changed_never_panics(
            at: prop::sample::Index,
            octet: u8,
        ) {
            let mut octets = text(&[tune(), begin(0), begin(1), Record::Confirmed]);
            let at = at.index(octets.len());
            octets[at] = octet;
            if let Ok(records) = parse(&octets) {
                let _ = outstanding(&records);
            }
        }
    }
}
