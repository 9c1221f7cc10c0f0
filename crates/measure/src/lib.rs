//! From what a run recorded to what can be judged: statistics, verdicts, JSON and a record file.
//! `onbeat-report` shows it to people.
//!
//! ```text
//! RunLog of each host ─ merge ─→ RunLog
//! RunLog ─┬─ records::encode ─→ bytes        (and back: records::decode)
//!         └─ analyse ─→ RunResult ─→ Results ─→ JSON, docs/results.md
//! Observed ─→ simulation::Results ─→ JSON
//! federation::Results ─→ JSON
//! measurement::Measurement ─→ JSON, and back
//! compare::Subject, twice ─→ compare::Comparison ─→ JSON
//! segments::Samples ─→ segments::Measured ─→ JSON, the file of execution times
//! ```
//! Pure: no clock, no file, no socket. The same input gives the same output, octet by octet.

mod analysis;
mod breakdown;
mod chains;
mod clocks;
pub mod compare;
pub mod contract;
pub mod federation;
pub mod join;
pub mod measurement;
mod parts;
pub mod records;
mod reservations;
mod result;
pub mod segments;
mod silence;
pub mod simulation;
mod stations;
mod statistics;
mod stepped;
pub mod tcp;
mod time_errors;
mod verdict;

pub use analysis::{Mismatch, analyse};
pub use breakdown::{Breakdown, ExampleMessage, LatencyPart, PartName};
pub use clocks::{ClockErrors, ClockResult};
pub use parts::{ClockDifference, NotOneRun, merge};
pub use reservations::{ListenerReservationResult, ReservationResult, ReservationsResult};
pub use result::{
    ChainResult, ChannelResult, Ended, ListenerResult, NetworkName, NetworkResult, PartResult,
    RelativeBasis, Results, RunResult, Silence, VERSION, Verdict, Verification, WakeupErrors,
    WakeupOffset, schema,
};
pub use stations::{StationResult, StationsResult};
pub use statistics::{Signed, Statistics};
pub use tcp::TcpResult;
pub use time_errors::{TimeErrorFigures, TimeErrors};
