//! `onbeat run --on`: the hosts of a description on several machines, as one run.
//!
//! ```text
//! machines.toml ─→ reach ─ ssh, sh ─→ part       this command, copied to each machine
//!                    fleet ←─ protocol ─→        files, clocks, runs; progress, records
//!                      └→ run ─→ join ─→ results, report
//! ```

mod clocks;
mod fleet;
mod part;
mod protocol;
mod reach;
mod run;
mod time_error;
mod tuned;

pub(crate) use part::part;
pub(crate) use run::run;
