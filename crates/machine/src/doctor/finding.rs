//! What a look at one thing comes to.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a check belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The kernel and how it was started.
    Kernel,
    /// Virtual machines and containers.
    Virtualisation,
    /// The clock that the kernel reads.
    Clocksource,
    /// Limits of real-time work, and what programs may do.
    Throttling,
    /// Idle states, frequencies, processors that share a core.
    Power,
    /// What runs on the isolated CPUs.
    Isolation,
    /// Interrupts and their threads.
    Interrupts,
    /// Network interfaces.
    Nic,
    /// The clock's synchronisation.
    Time,
    /// One running process.
    Process,
    /// A script that tunes a machine.
    Script,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Virtualisation => "virtualisation",
            Self::Clocksource => "clocksource",
            Self::Throttling => "throttling",
            Self::Power => "power",
            Self::Isolation => "isolation",
            Self::Interrupts => "interrupts",
            Self::Nic => "nic",
            Self::Time => "time",
            Self::Process => "process",
            Self::Script => "script",
        })
    }
}

/// What a guarantee rests on, and a finding may affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// A task continues soon after the instant that it waits for.
    Wakeup,
    /// Frames leave in their class, at their rate.
    Network,
    /// The clocks of several machines agree.
    Time,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Could not be seen.
    Unknown,
    /// Could be better.
    Advice,
    /// A guarantee of the system cannot be kept like this.
    Blocks,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Advice => "advice",
            Self::Blocks => "blocks",
        })
    }
}

/// One thing that is looked at: what is the same on every machine. docs/doctor.md has them all.
#[derive(PartialEq, Eq)]
pub struct Check {
    /// Its name, which stays: `throttling.fair-server`.
    pub id: &'static str,
    /// Where it belongs.
    pub area: Area,
    /// What is looked at.
    pub what: &'static str,
    /// What a wrong value affects.
    pub against: &'static [Need],
    /// Why it matters.
    pub why: &'static str,
    /// What to do.
    pub fix: &'static str,
    /// Whether that takes effect only after a reboot.
    pub reboot: bool,
}

/// Its name suffices: all else is the same on every machine.
impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// How one thing stands on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static Check,
    /// How it stands.
    pub state: State,
    /// Of which part of the machine, if there are several: an interface, a core.
    pub subject: Option<String>,
    /// What was found; if that is unknown, why it is.
    pub value: String,
    /// What would be right.
    pub wanted: String,
    /// What to do about it on this machine.
    pub fix: String,
}

impl Finding {
    /// The check's name, with the part of the machine: `nic.mtu eth0`.
    pub fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.check.id),
            None => self.check.id.to_owned(),
        }
    }
}
