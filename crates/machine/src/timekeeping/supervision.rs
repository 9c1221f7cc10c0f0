//! ptp4l and phc2sys as children: started, watched, started again, ended.

use super::configuration::{Configuration, PRIORITY};
use super::evaluation::{Facts, Status, evaluate};
use super::machine::{Emulated, emulation, gather, glance};
use onbeat::clock::{MonoTime, pause};
use onbeat::interface::{SyncAge, SyncSeen, SyncWatch, look_again};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// How long a program has to end by itself.
const PATIENCE: Span = Span::from_s(2);
const LOOK_AGAIN: Span = Span::from_ms(10);
/// CAP_SYS_TIME of `linux/capability.h`: to set clocks.
const CAP_SYS_TIME: libc::c_ulong = 25;
/// The most lines of a history: eleven days of one each second. Then it begins again, and the last
/// one is kept beside it.
const LINES_MAX: u64 = 1_000_000;
/// How much of a log's end is looked at for a program's last words.
const LAST_OCTETS: usize = 4_096;

/// Why clocks are not supervised.
#[derive(Debug, thiserror::Error)]
pub enum SupervisionError {
    /// The clock is another one's.
    #[error("the machine's clock is not steered here: {0}; run it free-running")]
    Emulated(Emulated),
    /// Somebody else does it.
    #[error("{0}: a ptp4l listens there already: stop it, or choose another --socket")]
    Taken(String),
    /// A file or program.
    #[error("{what}: {error}")]
    System {
        /// Which.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

fn failed(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> SupervisionError {
    move |error| SupervisionError::System { what: what.to_string(), error }
}

/// How long to wait before a program that ended is started again: twice as long each time, until
/// it has lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff(Span);

impl Backoff {
    /// The first wait, the longest, and how long a program must last to begin with the first.
    pub const FIRST: Span = Span::from_ms(500);
    /// The longest wait.
    pub const MOST: Span = Span::from_s(30);
    /// A program that lasted this long failed for a new reason.
    pub const LASTED: Span = Span::from_s(60);

    /// Before the first end.
    pub const fn new() -> Self {
        Self(Self::FIRST)
    }

    /// The wait after a program that has lasted so long.
    pub fn after(&mut self, lasted: Span) -> Span {
        if lasted >= Self::LASTED {
            self.0 = Self::FIRST;
        }
        let wait = self.0;
        self.0 = (wait * 2).min(Self::MOST);
        wait
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// One of the two programs.
#[derive(Debug)]
struct Daemon {
    name: &'static str,
    words: Vec<String>,
    log: PathBuf,
    steers: bool,
    child: Option<Child>,
    started: MonoTime,
    /// When it is started next, if it does not run.
    next: MonoTime,
    backoff: Backoff,
}

impl Daemon {
    fn new(name: &'static str, words: Vec<String>, directory: &Path, steers: bool) -> Self {
        let log = directory.join(format!("{name}.log"));
        let (started, backoff) = (MonoTime::now(), Backoff::new());
        Self { name, words, log, steers, child: None, started, next: started, backoff }
    }

    fn start(&mut self) -> Result<(), SupervisionError> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.map_err(failed(self.log.display()))?;
        let also = log.try_clone().map_err(failed(self.log.display()))?;
        let mut command = onbeat_run::environment::program(self.name);
        command.args(&self.words).stdin(Stdio::null()).stdout(log).stderr(also);
        let steers = self.steers;
        // SAFETY: between fork and exec only system calls are made that neither allocate nor lock.
        unsafe { command.pre_exec(move || prepare(steers)) };
        let child = command.spawn().map_err(failed(format!("{} (linuxptp)", self.name)))?;
        (self.child, self.started) = (Some(child), MonoTime::now());
        Ok(())
    }

    /// Starts it if it is time to; says what happened.
    fn tend(&mut self, now: MonoTime) -> Result<Option<String>, SupervisionError> {
        let Some(child) = &mut self.child else {
            if now < self.next {
                return Ok(None);
            }
            self.start()?;
            return Ok(Some(format!("{} is started", self.name)));
        };
        let Some(status) = child.try_wait().map_err(failed(self.name))? else { return Ok(None) };
        self.child = None;
        let wait = self.backoff.after(now - self.started);
        self.next = now + wait;
        let (name, words) = (self.name, last_words(&self.log));
        Ok(Some(format!("{name} ended ({status}): {words}; it is started again in {wait}")))
    }

    fn end(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let pid = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let until = MonoTime::now() + PATIENCE;
        while MonoTime::now() < until && matches!(child.try_wait(), Ok(None)) {
            pause(LOOK_AGAIN);
        }
        let _ = child.kill(); // one that has ended does not mind
        let _ = child.wait();
    }
}

/// In the child, before the program: it goes when we go; it is real-time, or it cannot set clocks.
fn prepare(steers: bool) -> io::Result<()> {
    // SAFETY: plain system calls on this process; the parameters are valid for the call.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        if steers {
            let parameters = libc::sched_param { sched_priority: PRIORITY.into() };
            // Where that is refused it runs as others do.
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters);
            return Ok(());
        }
        // Who may not drop the capability has none to give.
        libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0);
    }
    Ok(())
}

/// The last line of a log.
fn last_words(log: &Path) -> String {
    let octets = std::fs::read(log).unwrap_or_default();
    let end = &octets[octets.len().saturating_sub(LAST_OCTETS)..];
    let text = String::from_utf8_lossy(end);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("it said nothing").trim().to_owned()
}

/// How often everything is looked at; what changes with each Sync is looked at in between.
const SECOND: Span = Span::from_s(1);

/// What a look gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether it is in the history: the first in a second, and each that changes the verdict.
    pub noted: bool,
    /// What happened to the programs.
    pub notes: Vec<String>,
    /// What was found.
    pub facts: Facts,
    /// What it means.
    pub status: Status,
}

/// The programs under supervision. Dropping it ends them.
#[derive(Debug)]
pub struct Supervisor {
    configuration: Configuration,
    daemons: Vec<Daemon>,
    history: History,
    limit: Span,
    begun: MonoTime,
    watch: SyncWatch,
    /// The last time that everything was looked at, what was found since, and the last verdict.
    last: Option<(MonoTime, Facts, String)>,
}

impl Supervisor {
    /// Writes the configuration to `directory`, which is made if it is not there, and starts the
    /// programs in the calling thread's network namespace. The thread must live as long as they
    /// are to. `limit` is by how much the clock may be wrong.
    ///
    /// # Errors
    /// When the clock would be steered where it must not be; when a ptp4l listens at the
    /// configuration's socket already.
    pub fn start(
        configuration: Configuration,
        directory: &Path,
        limit: Span,
    ) -> Result<Self, SupervisionError> {
        let settings = configuration.settings();
        let steers = settings.steers;
        if steers && let Some(why) = emulation(&Machine::this(), &settings.interfaces) {
            return Err(SupervisionError::Emulated(why));
        }
        if UnixDatagram::unbound().and_then(|s| s.connect(&settings.socket)).is_ok() {
            return Err(SupervisionError::Taken(settings.socket.clone()));
        }
        std::fs::create_dir_all(directory).map_err(failed(directory.display()))?;
        for file in configuration.files(directory) {
            let path = directory.join(file.name);
            std::fs::write(&path, file.text).map_err(failed(path.display()))?;
        }
        let history = History::open(directory.join("clock.csv"))?;
        let ptp4l = configuration.ptp4l_words(directory);
        let mut daemons = vec![Daemon::new("ptp4l", ptp4l, directory, steers)];
        if let Some(words) = configuration.phc2sys_words() {
            daemons.push(Daemon::new("phc2sys", words, directory, steers));
        }
        let begun = MonoTime::now();
        let (watch, last) = (SyncWatch::default(), None);
        let mut supervisor = Self { configuration, daemons, history, limit, begun, watch, last };
        for daemon in &mut supervisor.daemons {
            daemon.start()?;
        }
        Ok(supervisor)
    }

    /// The numbers of the programs that run.
    pub fn running(&self) -> Vec<u32> {
        self.daemons.iter().filter_map(|daemon| Some(daemon.child.as_ref()?.id())).collect()
    }

    /// How long to wait from one [`look`](Self::look) to the next: so that a lost master is known
    /// of within three Sync intervals.
    pub fn look_again(&self) -> Span {
        let facts = self.last.as_ref().and_then(|(_, facts, _)| facts.survey.as_ref());
        look_again(facts.map_or(SyncSeen::default(), |survey| survey.sync).interval)
    }

    /// Looks after the programs, then at the clock; adds a line to the history each second, and
    /// when the verdict changes. Takes up to a second where ptp4l does not answer.
    pub fn look(&mut self) -> Result<Report, SupervisionError> {
        let mut notes = Vec::new();
        for daemon in &mut self.daemons {
            notes.extend(daemon.tend(MonoTime::now())?);
        }
        let settings = self.configuration.settings();
        let (interfaces, domain, steers) = (&settings.interfaces, settings.domain, settings.steers);
        let socket = Path::new(&settings.socket);
        let now = MonoTime::now();
        let last = self.last.take();
        let before = last.as_ref().map(|(_, _, kind)| kind.clone());
        // Who does not answer a glance may still answer in another domain.
        let glanced =
            last.filter(|(full, ..)| now - *full < SECOND).and_then(|(full, facts, _)| {
                let facts = glance(&facts, socket, &mut self.watch);
                facts.survey.is_some().then_some((full, facts))
            });
        let (full, facts) = match glanced {
            Some(glanced) => glanced,
            None => {
                let machine = Machine::this();
                gather(&machine, interfaces, socket, domain, steers, &mut self.watch)
                    .map(|facts| (now, facts))
                    .map_err(failed("the kernel's clock"))?
            }
        };
        let status = evaluate(&facts, self.limit);
        let noted = full == now || before != Some(status.kind());
        if noted {
            self.history.add(MonoTime::now() - self.begun, &facts, &status)?;
        }
        self.last = Some((full, facts.clone(), status.kind()));
        Ok(Report { noted, notes, facts, status })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // phc2sys first: it asks ptp4l.
        for daemon in self.daemons.iter_mut().rev() {
            daemon.end();
        }
        // What a ptp4l that had to be killed leaves behind.
        let _ = std::fs::remove_file(&self.configuration.settings().socket);
    }
}

/// The history of offsets, as CSV.
#[derive(Debug)]
struct History {
    path: PathBuf,
    file: File,
    lines: u64,
}

const HEADING: &str =
    "elapsed_ns,state,offset_ns,path_delay_ns,grandmaster,utc_offset_s,in_sync,sync_age_ns,reasons";

impl History {
    /// Begins one; an earlier one is kept beside it.
    fn open(path: PathBuf) -> Result<Self, SupervisionError> {
        if path.exists() {
            let before = path.with_extension("1.csv");
            std::fs::rename(&path, &before).map_err(failed(before.display()))?;
        }
        let file = File::create(&path).map_err(failed(path.display()))?;
        let mut history = Self { path, file, lines: 0 };
        history.line(HEADING)?;
        Ok(history)
    }

    fn line(&mut self, text: &str) -> Result<(), SupervisionError> {
        writeln!(self.file, "{text}").map_err(failed(self.path.display()))
    }

    fn add(
        &mut self,
        elapsed: Span,
        facts: &Facts,
        status: &Status,
    ) -> Result<(), SupervisionError> {
        if self.lines == LINES_MAX {
            *self = Self::open(self.path.clone())?;
        }
        self.lines += 1;
        self.line(&history_line(elapsed, facts, status))
    }
}

fn history_line(elapsed: Span, facts: &Facts, status: &Status) -> String {
    let reasons: Vec<_> = status.reasons.iter().map(ToString::to_string).collect();
    let reasons = reasons.join("; ").replace('"', "'");
    let known = facts.survey.as_ref().and_then(|survey| Some((survey, survey.deciding()?)));
    let cells = known.map_or(",,,,".to_owned(), |(survey, port)| {
        let (state, offset) = (port.state, survey.offset.as_ns());
        let (master, utc) = (survey.grandmaster, survey.utc_offset);
        format!("{state},{offset},{},{master},{utc}", survey.delay().as_ns())
    });
    let in_sync = u8::from(status.in_sync());
    let age = match facts.sync {
        SyncAge::AtMost(age) => age.as_ns().to_string(),
        SyncAge::Never | SyncAge::Unknown => String::new(),
    };
    format!("{},{cells},{in_sync},{age},\"{reasons}\"", elapsed.as_ns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timekeeping::Reason;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_a_program_that_lasted() {
        let mut backoff = Backoff::new();
        let waits: Vec<_> = (0..8).map(|_| backoff.after(Span::from_ms(1)).as_ns()).collect();
        let ms: Vec<_> = waits.iter().map(|ns| ns / 1_000_000).collect();
        assert_eq!(ms, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(backoff.after(Backoff::LASTED), Backoff::FIRST);
    }

    #[test]
    fn a_line_of_the_history_has_a_cell_for_each_heading_also_where_nothing_is_known() {
        let facts = Facts {
            survey: None,
            sync: SyncAge::Never,
            measured: false,
            elsewhere: None,
            heard: None,
            domain: 0,
            links: Vec::new(),
            steered: false,
            tai_offset: Span::ZERO,
            rivals: Vec::new(),
            apart: None,
        };
        let status = Status { error: None, reasons: vec![Reason::LinkDown("eth0".to_owned())] };
        let line = history_line(Span::from_s(1), &facts, &status);
        let (cells, reasons) = line.split_once(",\"").expect("reasons are quoted");
        assert_eq!(cells.split(',').count() + 1, HEADING.split(',').count());
        assert!(cells.starts_with("1000000000,,,") && reasons.contains("`eth0`"), "{line}");
    }
}
