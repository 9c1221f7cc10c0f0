//! What runs measured beside what was promised: a table for a terminal, and one self-contained
//! page.

mod accuracy;
mod breakdown;
mod end_to_end;
mod figures;
mod table;
mod time_errors;
mod view;

pub use table::{HEADINGS, Row, RowKind, programs, rows, table};

use crate::lanes::STYLE;
use crate::page::Page;
use onbeat_measure::RunResult;
use onbeat_model::plan::Plan;
use onbeat_model::record::RunLog;
use onbeat_model::system::System;

const PAGE: Page = Page {
    kicker: "measured against promised",
    body: include_str!("../../assets/run.html"),
    notes: "Times in the tables are rounded to 10 ns; the JSON results have whole nanoseconds.",
    styles: &[include_str!("../../assets/run.css"), STYLE],
    script: include_str!("../../assets/run.js"),
    has_charts: true,
};

/// The report on runs of one system: their plans, their records, and what
/// [`onbeat_measure::analyse`] made of these. `subject` is what follows `onbeat run` for the same
/// system in its directory: `.`, the description's file, or C files, and more arguments.
///
/// # Panics
/// When a plan, log or result is not of `system`; [`onbeat_measure::analyse`] has checked it if the
/// result is from there.
pub fn html(system: &System, subject: &[String], runs: &[(Plan, RunLog, RunResult)]) -> String {
    let (view, data) = view::view(system, subject, runs);
    PAGE.render(&system.name, &view, &data)
}
