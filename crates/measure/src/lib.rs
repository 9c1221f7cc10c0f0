//! From what a run recorded to what a person can judge: statistics, JSON, CSV, a record file and
//! one self-contained HTML report.
//!
//! ```text
//! RunLog ─┬─ records::encode ─→ bytes        (and back: records::decode)
//!         ├─ csv ─→ one line per message
//!         └─ analyse ─→ RunResult ─┬─ Results ─→ JSON, docs/results.md
//!                                  ├─ table ─→ rows for a terminal
//!                                  └─ report::html ─→ one file
//! Observed ─→ simulation::Results ─→ JSON, table; simulation::html ─→ one file
//! Study ─→ timing::{html, svg, dot, json, table}
//! measurement::Measurement ─→ JSON, table, samples as CSV; measurement::html ─→ one file
//! compare::Subject, twice ─→ compare::Comparison ─→ JSON, table; compare::html ─→ one file
//! segments::Samples ─→ segments::Measured ─→ JSON, table, CSV; segments::html ─→ one file
//! ```
//! Pure: no clock, no file, no socket. The same input gives the same output, octet by octet.

mod analysis;
mod chains;
pub mod compare;
mod csv;
pub mod grid;
mod join;
pub mod measurement;
pub mod records;
pub mod report;
mod result;
pub mod segments;
pub mod simulation;
mod statistics;
mod stepped;
mod table;
mod text;
pub mod timing;
mod verdict;

pub use analysis::{Mismatch, analyse};
pub use csv::csv;
pub use result::{
    ChainResult, ChannelResult, Ended, ListenerResult, NetworkName, NetworkResult, RelativeBasis,
    Results, RunResult, VERSION, Verdict, WakeupErrors, schema,
};
pub use statistics::Statistics;
pub use table::{HEADINGS, Row, RowKind, table};
