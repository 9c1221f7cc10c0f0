//! What a simulation saw beside what the plan promised: a table for a terminal, one self-contained
//! HTML page, and each repetition as CSV.

mod dedicated;
mod layout;
mod map;
mod page;
mod repetitions;
mod table;

pub use repetitions::Repetitions;
pub use table::table;

use crate::page::Page;
use onbeat_measure::simulation::Results;
use onbeat_model::plan::Plan;
use onbeat_model::system::System;

const PAGE: Page = Page {
    kicker: "simulated against bounded",
    body: include_str!("../../assets/simulation.html"),
    notes: "Times are rounded to 10 ns; the JSON results have whole nanoseconds.",
    styles: &[include_str!("../../assets/simulation.css")],
    script: include_str!("../../assets/simulation.js"),
    has_charts: false,
};

/// The page on a simulation: bounds beside latencies, loads and backlogs, and the network with the
/// load of its links. It asks nothing of the network, as the report does not.
///
/// # Panics
/// When `plan` or `results` are not of `system`.
pub fn html(system: &System, plan: &Plan, results: &Results) -> String {
    let (view, data) = page::page(system, plan, results);
    PAGE.render(&results.system, &view, &data)
}
