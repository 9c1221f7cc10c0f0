//! What runs measured beside what was promised: a table for a terminal, and one self-contained
//! page.

mod figures;
mod table;
mod view;

pub use table::{HEADINGS, Row, RowKind, programs, rows, table};

use crate::page::{chart_parts, render};
use minijinja::context;
use minijinja::value::Serde;
use onbeat_measure::RunResult;
use onbeat_model::plan::Plan;
use onbeat_model::record::RunLog;
use onbeat_model::system::System;

const TEMPLATE: &str = include_str!("../../assets/report.html");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// The report on runs of one system: their plans, their records, and what
/// [`onbeat_measure::analyse`] made of these.
///
/// # Panics
/// When a plan, log or result is not of `system`; [`onbeat_measure::analyse`] has checked it if the
/// result is from there.
pub fn html(system: &System, runs: &[(Plan, RunLog, RunResult)]) -> String {
    let (view, data) = view::view(system, runs);
    let page = context! { report => Serde(view), ..chart_parts() };
    render(TEMPLATE, page, &data, "", SCRIPT)
}
