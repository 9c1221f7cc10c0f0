//! What is known of a machine, as plain data: it can be written to a file, and judged elsewhere.

use super::calls::Calls;
use super::{clocksource, interrupts, isolation, kernel, nic, power, process, tasks, throttling};
use super::{time, virtualisation};
use onbeat_run::machine::Machine;
use serde::{Deserialize, Serialize};
use std::io;

/// A file with facts says so by itself.
const FORMAT: &str = "onbeat-facts";
const VERSION: u32 = 1;
/// Where a copy of another machine's files has its facts that only system calls tell.
pub const FACTS_FILE: &str = "/onbeat-facts.json";

/// Something that may not have been seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// What it is.
    Known(T),
    /// Why it is not known.
    Unknown(String),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown("it was not examined".to_owned())
    }
}

impl<T> Fact<T> {
    /// What it is, if that is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// The same of something made of it.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(make(value)),
            Self::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// What an attempt to see it gave; `place` is where it was looked for.
    pub(super) fn of(place: &str, result: io::Result<T>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(error) => Self::Unknown(match error.kind() {
                io::ErrorKind::NotFound => format!("there is no {place}"),
                io::ErrorKind::PermissionDenied => format!("{place} is for the superuser only"),
                _ => format!("{place}: {error}"),
            }),
        }
    }
}

/// A file's text.
pub(super) fn text(machine: &Machine, path: &str) -> Fact<String> {
    Fact::of(path, machine.read(path))
}

/// A file's number.
pub(super) fn number(machine: &Machine, path: &str) -> Fact<i64> {
    Fact::of(path, machine.number(path))
}

/// A file's list of processors, as the kernel writes such lists.
pub(super) fn cpus(machine: &Machine, path: &str) -> Fact<String> {
    Fact::of(path, machine.cpus(path)).map(|cpus| cpus.to_string())
}

/// The word in brackets of a file such as `always [madvise] never`; all of it if there is none.
pub(super) fn chosen(text: String) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    match inside {
        Some((word, _)) => word.to_owned(),
        None => text,
    }
}

/// What is known of one machine at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    format: String,
    version: u32,
    /// The kernel and how it was started.
    pub kernel: kernel::Kernel,
    /// Virtual machines and containers.
    pub virtualisation: virtualisation::Virtualisation,
    /// The clock that the kernel reads.
    pub clocksource: clocksource::Clocksource,
    /// Limits of real-time work, and what programs may do.
    pub throttling: throttling::Throttling,
    /// Idle states, frequencies, processors that share a core.
    pub power: power::Power,
    /// The isolated CPUs.
    pub isolation: isolation::Isolation,
    /// Interrupts.
    pub interrupts: interrupts::Interrupts,
    /// VLAN interfaces.
    pub vlans: Vec<nic::Vlan>,
    /// The daemons that keep the time.
    pub time: time::Daemons,
    /// All threads.
    pub tasks: Vec<tasks::Task>,
    /// The process that was asked about.
    pub process: Option<Fact<process::Process>>,
    /// What only system calls tell.
    pub calls: Fact<Calls>,
}

/// A file that holds no facts.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// It is no JSON, or not of this form.
    #[error("these are no facts of a machine as `onbeat doctor --save` writes them")]
    Form(#[from] serde_json::Error),
    /// It is another file, or of another version.
    #[error("format `{0}`, version {1}, is not `onbeat-facts`, version 1")]
    Version(String, u32),
}

impl Facts {
    /// Looks at a machine, and at one process of it. Takes less than a second; changes nothing.
    /// Of files below another root, what only system calls tell is taken from [`FACTS_FILE`] there.
    pub fn collect(machine: &Machine, pid: Option<u32>) -> Self {
        let tasks = tasks::all(machine);
        let time = time::Daemons::read(machine, &tasks);
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            kernel: kernel::Kernel::read(machine),
            virtualisation: virtualisation::Virtualisation::read(machine),
            clocksource: clocksource::Clocksource::read(machine),
            throttling: throttling::Throttling::read(machine, pid),
            power: power::Power::read(machine),
            isolation: isolation::Isolation::read(machine),
            interrupts: interrupts::Interrupts::read(machine),
            vlans: nic::vlans(machine),
            process: pid.map(|pid| process::Process::read(machine, pid)),
            calls: calls(machine, &time),
            time,
            tasks,
        }
    }

    /// Reads what [`Facts::to_json`] wrote.
    ///
    /// # Errors
    /// When it is something else.
    pub fn from_json(text: &str) -> Result<Self, FactsError> {
        let facts: Self = serde_json::from_str(text)?;
        if facts.format != FORMAT || facts.version != VERSION {
            return Err(FactsError::Version(facts.format, facts.version));
        }
        Ok(facts)
    }

    /// As text for a file.
    ///
    /// # Panics
    /// Never: nothing in it has a key that is no text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data")
    }
}

fn calls(machine: &Machine, time: &time::Daemons) -> Fact<Calls> {
    if machine.is_this() {
        return Fact::Known(Calls::ask(time));
    }
    let saved = text(machine, FACTS_FILE).map(|text| Facts::from_json(&text));
    match saved {
        Fact::Known(Ok(facts)) => facts.calls,
        Fact::Known(Err(error)) => Fact::Unknown(format!("{FACTS_FILE}: {error}")),
        Fact::Unknown(_) => Fact::Unknown(format!(
            "system calls say nothing of another machine, and there is no {FACTS_FILE} of it"
        )),
    }
}
