//! Results for people: pages, tables for a terminal, pictures and CSV.
//!
//! ```text
//! RunLog ─→ csv ─→ one line per message
//! RunLogs ─→ perfetto ─→ a trace
//! System, Plan ─→ plan::{summary, table, bounds}; gates::html ─→ one file
//! RunResult ─┬─ run::table
//!            └─ run::html ─→ one file
//! simulation::Results, federation::FederationResults, measurement::Measurement,
//! compare::Comparison, segments::Measured ─→ a table, a page
//! Study ─→ timing::{html, svg, dot, json, table}
//! Lanes ─→ lanes::svg
//! ```
//! Pure: no clock, no file, no socket. The same input gives the same output, octet by octet.

mod badge;
mod clocks;
pub mod comparison;
mod csv;
pub mod federation;
pub mod gates;
pub mod grid;
pub mod lanes;
pub mod measurement;
mod page;
mod perfetto;
pub mod plan;
mod reservations;
pub mod run;
mod schedulers;
pub mod segments;
pub mod simulation;
mod stations;
mod text;
pub mod timing;
mod topology;

pub use clocks::{clock_difference, clock_readings, wakeup_offset};
pub use csv::csv;
pub use perfetto::{TRACE_START, perfetto};
pub use reservations::reservations_csv;
