//! Processes of ours that outlive the user's session: the one that holds the idle states, and the
//! one that undoes what is not confirmed. Each says in a file of the state directory which it is.

use super::identity::{Identity, Living};
use super::journal::JournalError;
use super::state::Directory;
use super::target::Value;
use onbeat::clock::{MonoTime, pause};
use onbeat_model::time::Span;
use onbeat_run::machine::Machine;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// What a helper is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// It holds the idle states; its word is the latency in microseconds.
    Holder,
    /// It undoes a tune that is not confirmed; its word is when the tune began.
    Guard,
}

/// What a helper says of itself when it is ready, or why it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Notice {
    /// It is at work.
    Ready {
        /// Which process it is.
        identity: Identity,
        /// What it was started for.
        word: String,
    },
    /// It could not begin.
    Failed {
        /// Why.
        why: String,
    },
}

const DEVICE: &str = "/dev/cpu_dma_latency";
/// Octets of the longest notice.
const NOTICE_MAX: u64 = 4_096;
/// How long a helper may take to be ready, on a machine that is busy, and to end.
const READY_WITHIN: Span = Span::from_s(10);
const ENDS_WITHIN: Span = Span::from_s(10);
const LOOK_AGAIN: Span = Span::from_ms(10);
/// A machine has systemd as its first process if this is there (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
/// What asks it for a unit.
const SYSTEMD_RUN: [&str; 2] = ["/usr/bin/systemd-run", "/bin/systemd-run"];

impl Helper {
    /// Its notice, and what its unit is called after.
    const fn name(self) -> &'static str {
        match self {
            Self::Holder => "tune.holder",
            Self::Guard => "tune.guard",
        }
    }

    /// What it is, for people.
    const fn what(self) -> &'static str {
        match self {
            Self::Holder => "the process that holds the idle states",
            Self::Guard => "the process that undoes what is not confirmed",
        }
    }

    fn notice(self, machine: &Machine) -> Result<Option<Notice>, JournalError> {
        let Some(directory) = Directory::existing(machine)? else { return Ok(None) };
        let Some(octets) = directory.read(self.name(), NOTICE_MAX)? else { return Ok(None) };
        // What is no notice is nobody's: a helper rewrites it.
        Ok(serde_json::from_slice(&octets).ok())
    }

    fn say(self, machine: &Machine, notice: &Notice) -> Result<(), JournalError> {
        let octets = serde_json::to_vec(notice).expect("notices have no other keys than text");
        Directory::make(machine)?.write(self.name(), &octets)
    }

    /// The helper that lives, and its word.
    ///
    /// # Errors
    ///
    /// The state directory cannot be read, or is not to be trusted.
    pub fn living(self, machine: &Machine) -> io::Result<Option<(Living, String)>> {
        match self.notice(machine).map_err(as_io)? {
            Some(Notice::Ready { identity, word }) => {
                Ok(identity.living()?.map(|living| (living, word)))
            }
            _ => Ok(None),
        }
    }

    /// Says that this process is the helper, and ready.
    ///
    /// # Errors
    ///
    /// The state directory cannot be written, or is not to be trusted.
    pub fn ready(self, machine: &Machine, word: &str) -> io::Result<()> {
        let notice = Notice::Ready { identity: Identity::own()?, word: word.to_owned() };
        self.say(machine, &notice).map_err(as_io)
    }

    /// Says that there is none any more.
    pub(super) fn over(self, machine: &Machine) {
        if let Ok(Some(directory)) = Directory::existing(machine) {
            let _ = directory.remove(self.name()); // nobody is the process that it names
        }
    }

    /// Starts it, and returns when it is ready; gives what prevents its outliving the session, if
    /// anything.
    ///
    /// # Errors
    ///
    /// It cannot be started, or does not get ready.
    pub fn start(
        self,
        machine: &Machine,
        command: &[OsString],
        word: &str,
    ) -> io::Result<Option<String>> {
        if self == Self::Holder && self.living(machine)?.is_some() {
            return Err(io::Error::other(format!("there is {} already", self.what())));
        }
        self.over(machine);
        let mut words = command.to_vec();
        words.push(word.into());
        let doubt = outlive(machine, self, &words)?;
        let until = MonoTime::now() + READY_WITHIN;
        loop {
            match self.notice(machine).map_err(as_io)? {
                Some(Notice::Failed { why }) => return Err(io::Error::other(why)),
                Some(Notice::Ready { identity, word: ready }) if ready == word => {
                    // One that waits for nothing may have ended already.
                    return match identity.living()?.is_some() || self == Self::Guard {
                        true => Ok(doubt),
                        false => Err(io::Error::other(format!("{} has ended", self.what()))),
                    };
                }
                _ if MonoTime::now() > until => {
                    return Err(io::Error::other(format!("{} did not start", self.what())));
                }
                _ => pause(LOOK_AGAIN),
            }
        }
    }
}

/// Starts a process that continues when the user's session ends. Where there is systemd it gets a
/// unit of its own, since a session's processes may be killed with it (logind.conf(5),
/// KillUserProcesses); else, and where that fails, which is said, a session of its own.
fn outlive(machine: &Machine, helper: Helper, words: &[OsString]) -> io::Result<Option<String>> {
    let asks = SYSTEMD_RUN.into_iter().find(|path| machine.has(path));
    let Some(asks) = asks.filter(|_| machine.has(SYSTEMD)) else {
        return detached(words).map(|()| None);
    };
    // One that is about to end may still have a name that only tells the process.
    let name = helper.name().replace('.', "-");
    let now = onbeat::clock::MonoTime::now().as_ns();
    let unit = format!("onbeat-{name}-{}-{now}", std::process::id());
    let mut command = onbeat_run::environment::program(machine.path(asks));
    command.args(["--quiet", "--collect", "--service-type=exec", "--unit", &unit]);
    command.arg(format!("--description=onbeat tune: {}", helper.what()));
    command.arg("--").args(words).stdin(Stdio::null());
    let doubt = match command.output() {
        Ok(output) if output.status.success() => return Ok(None),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    detached(words)?;
    Ok(Some(format!("{} may end with your session: systemd-run: {doubt}", helper.what())))
}

/// Starts a process in a session of its own that has no terminal, and gets none: it is not the
/// session's first. It does not mind a hang-up, and its parent is not ours.
fn detached(words: &[OsString]) -> io::Result<()> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| io::Error::other("no command to start"))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let prepare = || {
        rustix::process::setsid()?;
        // SAFETY: the child of a program with one thread of its own, which this is after a fork;
        // what ignores a signal is not a function of ours.
        match unsafe { (libc::signal(libc::SIGHUP, libc::SIG_IGN), libc::fork()).1 } {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(()),
            // SAFETY: it ends this process, and nothing of it runs any more.
            _ => unsafe { libc::_exit(0) },
        }
    };
    // SAFETY: between fork and exec there are system calls only; they take no lock and allocate
    // nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn()?.wait().map(drop)
}

/// The latency to which a process of ours holds the idle states. Who may not look into the state
/// directory sees none.
pub(super) fn held(machine: &Machine) -> io::Result<Value> {
    match Helper::Holder.living(machine) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        living => Ok(living?.map(|(_, latency)| latency)),
    }
}

/// Ends the process that holds the idle states.
pub(super) fn end_holder(machine: &Machine) -> io::Result<()> {
    let Some((living, _)) = Helper::Holder.living(machine)? else { return Ok(()) };
    living.signal(Signal::TERM)?;
    let until = MonoTime::now() + ENDS_WITHIN;
    while !living.ends_within(LOOK_AGAIN)? {
        if MonoTime::now() > until {
            return Err(io::Error::other(format!("{} does not end", Helper::Holder.what())));
        }
    }
    Helper::Holder.over(machine);
    Ok(())
}

/// Holds the processors' idle states to a latency in microseconds until the process is ended: the
/// kernel keeps the request for as long as the device is open (its documentation of PM QoS).
///
/// # Errors
///
/// Another process of ours holds it, or the device cannot be opened.
pub fn hold(machine: &Machine, latency: i32) -> io::Result<()> {
    holding(machine, latency).inspect_err(|error| {
        // Who started it has not its output. The notice of one that lives stays.
        if Helper::Holder.living(machine).is_ok_and(|living| living.is_none()) {
            let _ = Helper::Holder.say(machine, &Notice::Failed { why: error.to_string() });
        }
    })
}

fn holding(machine: &Machine, latency: i32) -> io::Result<()> {
    let named = |error: io::Error| io::Error::other(format!("{DEVICE}: {error}"));
    let one = Directory::make(machine).and_then(|directory| directory.lock("tune.holder.lock"));
    let one = one.map_err(as_io)?;
    let _one = one.ok_or_else(|| io::Error::other("another process holds the idle states"))?;
    let device = OpenOptions::new().write(true).open(machine.path(DEVICE));
    let mut device = device.map_err(named)?;
    device.write_all(&latency.to_ne_bytes()).map_err(named)?;
    Helper::Holder.ready(machine, &latency.to_string())?;
    loop {
        pause(Span::from_s(3_600)); // a signal ends the process, and that the request
    }
}

fn as_io(error: JournalError) -> io::Error {
    match error {
        JournalError::File { error, path } => {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        }
        error => io::Error::other(error),
    }
}
