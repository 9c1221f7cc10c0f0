//! Schedulability of hosts: response times under fixed priorities, processor demand under EDF;
//! `docs/schedulability.md`.

use onbeat_model::time::Span;

/// What a task may have to wait for on its processor while it executes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interference {
    /// A less urgent task's longest critical section, or other piece that is not preempted.
    pub blocking: Span,
    /// More urgent tasks.
    pub others: Vec<Other>,
}

/// A task that preempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The least time between two releases.
    pub period: Span,
    /// By how much a release may be late.
    pub jitter: Span,
    /// Its longest execution.
    pub wcet: Span,
}
