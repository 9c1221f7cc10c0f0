//! Settings of a machine for a real-time system, made so that they can be taken back
//! (docs/tune.md).
//!
//! A [`Snapshot`] says how the machine is, a [`Requirement`] what is wanted; [`plan()`] is the
//! difference, as a list of [`Change`]s: a pure function. An [`Edge`] reads and writes one
//! [`Target`]. [`apply`] writes each change into the [`Journal`] before it makes it, and [`undo`]
//! takes them back.

mod admit;
mod boot;
mod edge;
mod fake_machine;
mod helper;
mod identity;
mod interface;
mod journal;
mod kernel;
mod plan;
mod resume;
mod run;
mod session;
mod snapshot;
mod state;
mod target;
mod threads;
mod watch;

pub use edge::Edge;
pub use fake_machine::FakeMachine;
pub use helper::{Helper, hold};
pub use identity::{Identity, Living};
pub use interface::carriers;
pub use journal::{
    Ending, Journal, JournalError, Outstanding, Record, VERSION, boot, last, outstanding, parse,
    read,
};
pub use kernel::{Kernel, ThisKernel};
pub use onbeat_configuration::{Disciplines, Gates, Numbering, Queue, Shaper, Traffic, Vlan};
pub use plan::{Change, Plan, Profile, Requirement, WishError, plan};
pub use resume::{restarted, resume};
pub use run::{
    Applied, Event, Interrupt, State, Status, TuneError, add, apply, end, guard, remove, undo,
    verify,
};
pub use session::sessions;
pub use snapshot::{Cgroups, InterfaceFacts, Irq, KernelThread, Snapshot, snapshot};
pub use target::{Bound, Form, PTP4L, Target, Value};
pub use watch::watch_once;

#[cfg(test)]
mod tests;
