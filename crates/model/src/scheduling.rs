//! How machines are set, and schedule programs, in real-time runs.

use crate::time::Span;
use serde::{Deserialize, Serialize};

/// How the system schedules the programs of a run that have a priority (sched(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SchedulingPolicy {
    /// `SCHED_FIFO`: until they wait.
    #[default]
    Fifo,
    /// `SCHED_RR`: those of one priority in turns.
    Rr,
    /// `SCHED_DEADLINE` for programs that say how much of the processor they need; the others as
    /// with [`Self::Fifo`].
    Deadline,
    /// `SCHED_OTHER`, as all other processes, and without CPUs of their own.
    Other,
}

/// What a run on several machines sets on each of them for its time: the profiles of `tune`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TuneProfile {
    /// Nothing.
    #[default]
    Off,
    /// What needs no isolated CPUs.
    None,
    /// CPUs isolated by a cpuset.
    Cpuset,
    /// CPUs isolated by boot parameters, which must be in force.
    TunedLike,
}

/// How much of a processor a program needs, for SCHED_DEADLINE (sched(7)): not more than
/// `runtime` in each `period`, and that by `deadline` after the period began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuBudget {
    /// Positive.
    pub runtime: Span,
    /// Not less than `runtime`.
    pub deadline: Span,
    /// Not less than `deadline`.
    pub period: Span,
}
